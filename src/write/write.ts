// The write path of every interface: rule, body, condition, fence, request, settlement.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import type { LoggedChange } from '../handle/change.js';
import type { WriteOutcome } from '../handle/outcome.js';
import { contextOf, requestIdOf } from '../http/context.js';
import type { Hooks } from '../hooks.js';
import type { Resolver } from '../resolver/resolver.js';
import {
  type DeletionRules,
  type WriteAnswer,
  allowsDeletion,
  combineOutcomes,
  judgeWrite,
} from './decisions.js';
import { type HandleLock, type Held, NOT_HELD } from './lock/handle-lock.js';
import { assertForwards } from '../upstream/source.js';
import { type OriginRecord, assertWritable } from './origin-record.js';

/** A write, translated from a request by an interface. */
export interface Write<Body, Current, Answer extends WriteAnswer, Result> {
  req: IncomingMessage;
  res: ServerResponse;
  origin: OriginRecord;
  /** The scope of a deletion, and the reply if deletion is disabled. */
  deletion?: { scope: 'handle' | 'values'; refuse: () => Promise<Result> } | undefined;
  /** Receives the body before the handle is locked or fenced, because the body may arrive slowly. */
  withBody: <T>(work: (body: Body) => Promise<T>) => Promise<T>;
  /**
   * Reads the record that the write depends on, as seen by the caller; undefined for an unconditional write.
   *
   * @throws ServiceError PRECONDITION_FAILED
   */
  read?: () => Promise<Current>;
  /** Whether the Handle server makes the write atomic for this record, so that no lock is needed. */
  isAtomic?: (current: Current) => boolean;
  plan: (body: Body, current: Current | undefined) => Plan<Answer, Result> | Promise<Plan<Answer, Result>>;
}

/** The requests to the Handle server, and the reply to the client. */
export interface Plan<Answer extends WriteAnswer, Result> {
  /** Sent sequentially until a request is refused. Each calls `assertHeld` just before it is sent. */
  requests: readonly ((assertHeld: () => void) => Promise<Answer>)[];
  /** Indexes of the written values; undefined for a write of the whole record. */
  indexes?: LoggedChange['indexes'];
  /** Checks after an unknown outcome whether the record was stored; by default it counts as not stored. */
  isStored?: () => Promise<boolean>;
  /**
   * Builds the reply from the last response, which is undefined if nothing was sent or the record was found to
   * be stored. The result is undefined if the record was created or deleted meanwhile; it is then read again.
   */
  conclude: (answer: Answer | undefined) => Result | undefined | Promise<Result | undefined>;
}

/** A `withBody` for writes without a body, or with a body that was already received. */
export const noBody = <T>(work: (body: undefined) => Promise<T>): Promise<T> => work(undefined);

/**
 * Carries out a write. @throws ServiceError CONCURRENT_MODIFICATION, LOCK_UNAVAILABLE,
 * INVALIDATION_UNCONFIRMED and others, and the errors of the write's functions
 */
export type CarryOut = <Body, Current, Answer extends WriteAnswer, Result>(
  write: Write<Body, Current, Answer, Result>,
) => Promise<Result>;

interface WriteParts {
  rules: DeletionRules;
  lock: HandleLock;
  resolver: Pick<Resolver<unknown>, 'fence' | 'recheck'>;
  hooks: Pick<Hooks, 'changed'>;
}

/**
 * Maximum attempts while writers that bypass the lock create or delete the handle between the read and the
 * write.
 */
const MAX_TRIES = 3;

export function createCarryOut({ rules, lock, resolver, hooks }: WriteParts): CarryOut {
  return async function carryOut({ req, res, origin, deletion, withBody, read, isAtomic, plan }) {
    const { handle, server, caller } = origin;
    assertForwards(server);
    if (deletion !== undefined && !allowsDeletion(rules, deletion.scope, handle.text))
      return deletion.refuse();

    return withBody(async (body) => {
      type Current = Parameters<typeof plan>[1];
      const attempt = async (current: Current, held: Held) => {
        const planned = await plan(body, current);
        assertWritable(server);
        const fence = await resolver.fence(handle);
        const sending = planned.requests.map((send) => () => send(held.assertHeld));
        const onSettled = async (written: Written): Promise<void> => {
          const change = changeOf(written, { req, res, origin }, planned);
          await Promise.all(hooks.changed.map((record) => record([change])));
        };
        const answer = await sendFenced(fence, sending, { ...planned, onSettled });
        if (answer?.status === 401 || answer?.status === 403) held.onRefused();
        return planned.conclude(answer);
      };
      if (read === undefined) return (await attempt(undefined, NOT_HELD)) ?? concurrentModification();

      return lock(handle, {
        req,
        read,
        unlocked: (current) => (isAtomic?.(current) ? attempt(current, NOT_HELD) : undefined),
        async work(current, held) {
          for (let tries = 0; tries < MAX_TRIES; tries++) {
            const result = await attempt(tries === 0 ? current : await read(), held);
            if (result !== undefined) return result;
          }
          return concurrentModification();
        },
      }).catch(async (failure: unknown) => {
        // The ETag of a failed condition usually came from the cache, where the caller will read the record
        // again.
        if (isFailedCondition(failure)) await resolver.recheck(handle, caller);
        throw failure;
      });
    });
  };
}

function concurrentModification(): never {
  throw new ServiceError('CONCURRENT_MODIFICATION', { detail: 'concurrent modification' });
}

const isFailedCondition = (failure: unknown): boolean =>
  failure instanceof ServiceError && failure.code === 'PRECONDITION_FAILED';

type AnyPlan = Plan<WriteAnswer, unknown>;

/** The result of a write that has, or may have, changed the record. */
interface Written extends Pick<LoggedChange, 'outcome' | 'isConfirmed'> {
  /** The last response; undefined if the last request failed. */
  answer: WriteAnswer | undefined;
}

function changeOf(
  { outcome, isConfirmed, answer }: Written,
  { req, res, origin }: Pick<Write<unknown, unknown, WriteAnswer, unknown>, 'req' | 'res' | 'origin'>,
  { indexes, isStored }: Pick<AnyPlan, 'indexes' | 'isStored'>,
): LoggedChange {
  // `isStored` is defined only for creations.
  const isNew = isStored !== undefined || (answer?.status === 201 && indexes === undefined);
  return {
    operation: req.method === 'DELETE' ? 'delete' : isNew ? 'create' : 'update',
    handle: answer?.minted ?? origin.handle.text,
    indexes,
    identity: origin.identity,
    isConfirmed,
    interface: contextOf(res).family,
    outcome,
    requestId: requestIdOf(res),
  };
}

interface Settlement extends Pick<AnyPlan, 'isStored'> {
  /** Called after the settlement if the record was changed, or may have been. Never throws. */
  onSettled?: (written: Written) => Promise<void>;
}

/**
 * Sends the requests under the fence until one is refused, then settles the fence by their combined outcome.
 * While the fence is raised, earlier loads are not stored.
 *
 * @returns the last response; undefined if nothing was sent, or if the record was found to be stored
 */
export async function sendFenced<Answer extends WriteAnswer>(
  fence: Record<WriteOutcome, () => Promise<void>>,
  requests: readonly (() => Promise<Answer>)[],
  { isStored, onSettled }: Settlement = {},
): Promise<Answer | undefined> {
  const sent = await sendSequentially(requests);
  const { last } = sent;
  const combined = combineOutcomes(sent.outcomes);
  const wasStored = combined === 'unknown' && (await isStored?.().catch(() => false)) === true;
  const outcome = wasStored ? 'changed' : combined;
  const written = writtenBy(sent, { outcome, wasStored });
  // Runs after the settlement, even if it fails, so that a subscriber to changes reads the new record.
  await settle(fence, outcome).finally(() => written && onSettled?.(written));
  if (wasStored || last === undefined) return undefined;
  if ('answer' in last) return last.answer;
  throw combined === 'unchanged' ? last.failure : withoutRetryAfter(last.failure);
}

function writtenBy(
  { isAccepted, last }: Sent<WriteAnswer>,
  { outcome, wasStored }: { outcome: WriteOutcome; wasStored: boolean },
): Written | undefined {
  const answer = last && 'answer' in last ? last.answer : undefined;
  // A server that accepts a request has checked its login; any other may have failed before.
  if (outcome === 'unknown') return { outcome, isConfirmed: isAccepted, answer };
  return isAccepted || wasStored ? { outcome: 'changed', isConfirmed: isAccepted, answer } : undefined;
}

interface Sent<Answer> {
  outcomes: WriteOutcome[];
  /** Whether a request succeeded. A 404 invalidates the entry too, but changes nothing at the Handle server. */
  isAccepted: boolean;
  last: { answer: Answer } | { failure: unknown } | undefined;
}

async function sendSequentially<Answer extends WriteAnswer>(
  requests: readonly (() => Promise<Answer>)[],
): Promise<Sent<Answer>> {
  const sent: Sent<Answer> = { outcomes: [], isAccepted: false, last: undefined };
  for (const send of requests) {
    try {
      const answer = await send();
      sent.outcomes.push(judgeWrite(answer));
      sent.last = { answer };
      if (answer.status >= 300) break;
      sent.isAccepted = true;
    } catch (failure) {
      sent.outcomes.push(judgeWrite({ failure }));
      sent.last = { failure };
      break;
    }
  }
  return sent;
}

/**
 * Lowers the fence, and invalidates a changed entry on every instance. Settles once all instances have
 * acknowledged or lost their lease; only then may the caller get its reply.
 */
async function settle(
  fence: Record<WriteOutcome, () => Promise<void>>,
  outcome: WriteOutcome,
): Promise<void> {
  try {
    await fence[outcome]();
  } catch (error) {
    throw outcome === 'unchanged' ? error : withoutRetryAfter(error);
  }
}

/** Removes Retry-After, because a client must not be told to repeat a write that may have been executed. */
function withoutRetryAfter(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.upstreamAnswer !== undefined) return error;
  const { code, message, responseCode, upstreamStatus, diagnosis, cause } = error;
  const details = { message, responseCode, upstreamStatus, diagnosis, cause };
  return new ServiceError(code, { ...details, retryAfterMs: 'never' });
}
