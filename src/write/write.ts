// The write path of every interface: rule, body, condition, fence, requests, settlement.
import type { IncomingMessage } from 'node:http';
import type { Fence } from '../cache/store.js';
import type { Config } from '../config/schema.js';
import type { Host } from '../host.js';
import { ServiceError } from '../errors.js';
import { type LoggedChange, RESPONSE_CODE, type WriteOutcome } from '../handle/outcome.js';
import { type RequestContext, requestIdOf } from '../http/context.js';
import { type WriteAnswer, allowsDeletion, judgeWrite } from './decisions.js';
import type { HandleLock, Held } from './lock.js';
import { type OriginRecord, type SendRequest, writableServer } from './origin-record.js';

/** The scope of a deletion, and the reply if deletion is disabled. */
export interface Deletion<Result> {
  scope: 'handle' | 'values';
  refuse: () => Promise<Result>;
}

/** A write, translated from a request by an interface: its steps in their order. */
interface Write<Body, Current, Result> {
  req: IncomingMessage;
  context: RequestContext;
  origin: OriginRecord;
  deletion?: Deletion<Result> | undefined;
  /** Receives the body before the handle is locked or fenced, because the body may arrive slowly. */
  withBody: (req: IncomingMessage, work: (body: Body) => Promise<Result>) => Promise<Result>;
  /**
   * Reads the record that the write depends on, as seen by the caller; undefined for an unconditional write. Resolves to
   * undefined for a creation, which the Handle server makes atomic, so that no lock is needed.
   *
   * @throws ServiceError PRECONDITION_FAILED
   */
  read?: (() => Promise<Current | undefined>) | undefined;
  /**
   * Sends the write, and builds its result. The result is undefined if the record was created or deleted
   * meanwhile; it is then read again.
   */
  attempt: (body: Body, current: Current | undefined, send: SendWrite) => Promise<Result | undefined>;
}

interface WriteEffect {
  /** Indexes of the written values; undefined for a write of the whole record. */
  indexes?: LoggedChange['indexes'];
  /** Checks after an unknown outcome whether the record was created; by default it counts as not created. */
  isStored?: (() => Promise<boolean>) | undefined;
}

/**
 * Sends requests to the Handle server under a fence, sequentially until one is refused. Resolves to the last
 * response, with the outcome of all requests; undefined if nothing was sent, or if the record was found to be stored.
 */
export type SendWrite = <Answer extends WriteAnswer>(
  requests: readonly SendRequest<Answer>[],
  effect?: WriteEffect,
) => Promise<Judged<Answer> | undefined>;

/** The last response of a write, and the outcome of all its requests. */
export type Judged<Answer> = Answer & { outcome: WriteOutcome };

/** A `withBody` for writes without a body, or with a body that was already received. */
export const noBody = <T>(_req: IncomingMessage, work: (body: undefined) => Promise<T>): Promise<T> =>
  work(undefined);

/**
 * Carries out a write. @throws ServiceError CONCURRENT_MODIFICATION, LOCK_UNAVAILABLE,
 * INVALIDATION_UNCONFIRMED and others, and the errors of the write's functions
 */
export type CarryOut = <Body, Current, Result>(write: Write<Body, Current, Result>) => Promise<Result>;

/**
 * Maximum attempts while writers that bypass the lock create or delete the handle between the read and the
 * write.
 */
const MAX_TRIES = 3;

export function createCarryOut(rules: Config['deletion'], lock: HandleLock, host: Host): CarryOut {
  return async function carryOut<Body, Current, Result>(write: Write<Body, Current, Result>) {
    const { req, context, deletion, read } = write;
    const { handle, refusal } = write.origin;
    if (refusal !== undefined) throw refusal();
    if (deletion !== undefined && !allowsDeletion(rules, deletion.scope, handle.text))
      return deletion.refuse();

    return write.withBody(req, async (body) => {
      const attempt = (current?: Current, held?: Held): Promise<Result | undefined> =>
        write.attempt(body, current, createSendWrite(host, write, held));
      if (read === undefined) return (await attempt()) ?? concurrentModification();
      try {
        const readAt = performance.now();
        const first = await read();
        const created = first === undefined ? await attempt() : undefined;
        if (created !== undefined) return created;
        const client = { identity: write.origin.identity, network: context.client.network };
        return await lock(handle, client, async (held) => {
          const isCurrent = first !== undefined && held.freeSince <= readAt;
          for (let tries = 0; tries < MAX_TRIES; tries++) {
            const result = await attempt(isCurrent && tries === 0 ? first : await read(), held);
            if (result !== undefined) return result;
          }
          return concurrentModification();
        });
      } catch (failure) {
        // The ETag of a failed condition usually came from the cache, where the caller will read the record
        // again.
        if (failure instanceof ServiceError && failure.code === 'PRECONDITION_FAILED')
          await host.resolver.recheck(handle, write.origin.caller);
        throw failure;
      }
    });
  };
}

function concurrentModification(): never {
  throw new ServiceError('CONCURRENT_MODIFICATION', { detail: 'concurrent modification' });
}

function createSendWrite<Body, Current, Result>(
  { cache: { store }, hooks, refOf }: Host,
  { req, context, origin }: Write<Body, Current, Result>,
  held: Held | undefined,
): SendWrite {
  return async function send(requests, { indexes, isStored } = {}) {
    const { handle } = origin;
    const server = writableServer(origin);
    const last = await sendFenced(await store.fence(handle.key), requests, {
      assertHeld: held?.assertHeld,
      isStored,
      forgetMinted: (minted) => store.forget(refOf(minted).key),
      async onChanged({ isAccepted, answer }, outcome) {
        if (hooks.changed.length === 0) return;
        // `isStored` is defined only for creations.
        const isNew = isStored !== undefined || (answer?.status === 201 && indexes === undefined);
        const change: LoggedChange = {
          operation: req.method === 'DELETE' ? 'delete' : isNew ? 'create' : 'update',
          handle: answer?.minted ?? handle.text,
          indexes,
          identity: origin.identity,
          isConfirmed: isAccepted,
          interface: context.family,
          outcome,
          requestId: requestIdOf(context),
        };
        await Promise.all(hooks.changed.map((record) => record([change])));
      },
    });
    if (last?.status === 401 || last?.status === 403) {
      held?.onRefused();
      if (ignoresLogin(req, last)) server.onIgnoredLogin?.();
    }
    return last;
  };
}

/** Whether the server has ignored a login, as over plain HTTP (recording "create: Basic over plain http"). */
const ignoresLogin = ({ headers }: IncomingMessage, { responseCode }: WriteAnswer): boolean =>
  headers.authorization !== undefined && responseCode === RESPONSE_CODE.authenticationNeeded;

interface Settlement {
  assertHeld?: (() => void) | undefined;
  isStored?: WriteEffect['isStored'];
  /** Invalidates a minted handle, which may be cached as not found. */
  forgetMinted?: (handle: string) => Promise<void>;
  /** Called after the settlement if the record was changed, or may have been. Never throws. */
  onChanged?: (sent: Sent<WriteAnswer>, outcome: LoggedChange['outcome']) => Promise<void>;
}

/**
 * Sends the requests under the fence until one is refused, then settles the fence by their combined outcome.
 * While the fence is raised, earlier loads are not stored. Settles once all instances have acknowledged the
 * change or lost their lease; only then may the caller get its reply.
 *
 * @returns the last response, with the outcome of all requests; undefined if nothing was sent, or if the record was found
 * to be stored
 */
export async function sendFenced<Answer extends WriteAnswer>(
  fence: Fence,
  requests: readonly SendRequest<Answer>[],
  settlement: Settlement = {},
): Promise<Judged<Answer> | undefined> {
  const sent = await sendSequentially(fence, requests, settlement);
  const { outcome, answer, failed } = sent;
  try {
    await settle(fence, sent, settlement);
    if (failed !== undefined) throw failed.failure;
  } catch (failure) {
    throw outcome === 'unchanged' ? failure : withoutRetryAfter(failure);
  } finally {
    // After the settlement, even if it failed, so that a subscriber to changes reads the new record.
    if (outcome !== 'unchanged' && !wasMissing(sent)) await settlement.onChanged?.(sent, outcome);
  }
  return answer && { ...answer, outcome };
}

/** Whether the handle did not exist: a 404 invalidates the entry, but changes nothing at the Handle server. */
const wasMissing = ({ isAccepted, answer }: Sent<WriteAnswer>): boolean =>
  !isAccepted && answer?.status === 404;

/** Settles once no instance serves the record before the write, or the absence of a minted one. */
async function settle(
  fence: Fence,
  { outcome, answer }: Sent<WriteAnswer>,
  { forgetMinted }: Settlement,
): Promise<void> {
  try {
    await fence[outcome]();
  } finally {
    if (answer?.minted !== undefined) await forgetMinted?.(answer.minted);
  }
}

interface Sent<Answer> {
  /** The outcome of all requests together. */
  outcome: WriteOutcome;
  /** Whether a request succeeded. A server that accepts a request has checked its login. */
  isAccepted: boolean;
  /** The last response; undefined if the record was found to be stored after an unknown outcome. */
  answer?: Answer | undefined;
  failed?: { failure: unknown } | undefined;
}

async function sendSequentially<Answer extends WriteAnswer>(
  fence: Fence,
  requests: readonly SendRequest<Answer>[],
  { assertHeld, isStored }: Settlement,
): Promise<Sent<Answer>> {
  let sent: Sent<Answer> = { outcome: 'unchanged', isAccepted: false };
  for (const [at, send] of requests.entries()) {
    const { isAccepted } = sent;
    if (at > 0) fence.extend();
    try {
      const answer = await send(assertHeld);
      sent = { outcome: judgeWrite(answer), isAccepted, answer };
      if (answer.status >= 300) break;
      sent.isAccepted = true;
    } catch (failure) {
      sent = { outcome: judgeWrite({ failure }), isAccepted, failed: { failure } };
      break;
    }
  }
  const { outcome, isAccepted } = sent;
  const wasFound = outcome === 'unknown' && (await isStored?.().catch(() => false)) === true;
  if (wasFound) return { outcome: 'changed', isAccepted };
  // The last request changed nothing, but an earlier one did.
  return outcome === 'unchanged' && isAccepted ? { ...sent, outcome: 'changed' } : sent;
}

/** Removes Retry-After, because a client must not be told to repeat a write that may have been executed. */
export function withoutRetryAfter(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { message, responseCode, upstreamStatus, diagnosis, cause } = error;
  const upstreamAnswer = error.upstreamAnswer && { ...error.upstreamAnswer, retryAfter: undefined };
  const details = { message, responseCode, upstreamStatus, diagnosis, cause, upstreamAnswer };
  return new ServiceError(error, { ...details, retryAfterMs: 'never' });
}
