// Bounds how long something is waited for: by a time limit, and by callers who leave.
import { ServiceError } from '../errors.js';

export interface Limit {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/**
 * Runs work under one limit for all of it. A timer of our own, as AbortSignal.timeout cannot be
 * cleared, and AbortSignal.any may lose a timeout to the garbage collector (Node 20).
 */
export async function withTimeLimit<T>(
  { timeoutMs, signal }: Limit,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  if (signal?.aborted) throw callerLeft();
  const limit = new AbortController();
  const expire = (): void => {
    limit.abort(
      new ServiceError('UPSTREAM_TIMEOUT', { detail: `no whole answer within ${Math.ceil(timeoutMs)} ms` }),
    );
  };
  const leave = (): void => {
    limit.abort(callerLeft());
  };
  const timer = setTimeout(expire, timeoutMs);
  signal?.addEventListener('abort', leave, { once: true });
  try {
    return await untilAborted(work(limit.signal), limit.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
}

/** Never the caller's own reason: that may be a ServiceError, and would be taken for a failure of the server. */
const callerLeft = (): DOMException => new DOMException('the caller no longer waits', 'AbortError');

/** Waits for a promise, but no longer than the signal allows. What is left behind fails unheard. */
export async function untilAborted<T>(promise: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return promise;
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
