// The write path of every interface: rule, body, condition, fence, requests, settlement.
import type { IncomingMessage } from 'node:http';
import type { Fence } from '../cache/store.js';
import type { Config } from '../config/schema.js';
import type { Host } from '../host.js';
import { ServiceError } from '../errors.js';
import { type LoggedChange, RESPONSE_CODE, type WriteOutcome } from '../handle/outcome.js';
import { type RequestContext, requestIdOf } from '../http/context.js';
import type { OriginServer } from '../upstream/contract.js';
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
  /** Sends the write, and builds its result; undefined after a concurrent creation or deletion: it is then read again. */
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
 * Settles once all instances have acknowledged the change or lost their lease; only then may the caller get its reply.
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

/** Maximum attempts while writers that bypass the lock create or delete the handle between the read and the write. */
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
        // The ETag of a failed condition usually came from the cache, where the caller will read the record again.
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

/** Creates the function that sends the requests of a write; `held` is its lock, if it needs one. */
export function createSendWrite<Body, Current, Result>(
  { cache: { store }, hooks, refOf }: Host,
  { req, context, origin }: Write<Body, Current, Result>,
  held?: Held,
): SendWrite {
  async function settle(fence: Fence, { outcome, answer }: Sent<WriteAnswer>): Promise<void> {
    try {
      await fence[outcome]();
    } finally {
      // A minted handle may be cached as not found.
      if (answer?.minted !== undefined) await store.forget(refOf(answer.minted).key);
    }
  }

  function reportRefusal({ status, responseCode }: WriteAnswer, server: OriginServer): void {
    if (status !== 401 && status !== 403) return;
    held?.onRefused();
    // The server has ignored the login, as over plain HTTP (recording "create: Basic over plain http").
    const isIgnored =
      req.headers.authorization !== undefined && responseCode === RESPONSE_CODE.authenticationNeeded;
    if (isIgnored) server.onIgnoredLogin?.();
  }

  async function recordChange(
    { isAccepted, answer }: Sent<WriteAnswer>,
    outcome: LoggedChange['outcome'],
    { indexes, isStored }: WriteEffect,
  ): Promise<void> {
    if (hooks.changed.length === 0) return;
    // `isStored` is defined only for creations.
    const isNew = isStored !== undefined || (answer?.status === 201 && indexes === undefined);
    const change: LoggedChange = {
      operation: req.method === 'DELETE' ? 'delete' : isNew ? 'create' : 'update',
      handle: answer?.minted ?? origin.handle.text,
      indexes,
      identity: origin.identity,
      isConfirmed: isAccepted,
      interface: context.family,
      outcome,
      requestId: requestIdOf(context),
    };
    await Promise.all(hooks.changed.map((record) => record([change])));
  }

  return async function send(requests, effect = {}) {
    const server = writableServer(origin);
    // While the fence is raised, earlier loads are not stored.
    const fence = await store.fence(origin.handle.key);
    const sent = await sendSequentially(fence, requests, held?.assertHeld, effect.isStored);
    const { outcome, answer, failed } = sent;
    try {
      await settle(fence, sent);
      if (failed !== undefined) throw failed.failure;
    } catch (failure) {
      throw outcome === 'unchanged' ? failure : withoutRetryAfter(failure);
    } finally {
      // After the settlement, even if it failed, so that a subscriber to changes reads the new record.
      if (outcome !== 'unchanged' && !wasMissing(sent)) await recordChange(sent, outcome, effect);
    }
    if (answer === undefined) return undefined;
    reportRefusal(answer, server);
    return { ...answer, outcome };
  };
}

/** Whether the handle did not exist: a 404 invalidates the entry, but changes nothing at the Handle server. */
const wasMissing = ({ isAccepted, answer }: Sent<WriteAnswer>): boolean =>
  !isAccepted && answer?.status === 404;

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
  assertHeld: Held['assertHeld'],
  isStored: WriteEffect['isStored'],
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
