// Bounds how long something is waited for: by a time limit, and by callers who leave.
import { ServiceError } from '../errors.js';

export interface TimeLimit {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/**
 * The end of what one piece of work may take. An AbortController would do the same for the price of a
 * quarter of a whole read: it is an EventTarget, and so is its signal.
 */
export interface Limit {
  /** Set once the time is over, or the caller has left. */
  readonly reason: Error | undefined;
  /** Tells whoever works now; the next one takes its place. */
  onOver: (reason: Error) => void;
}

/** Runs work that gives up at once when the limit is over: with its reason, and leaving nothing behind. */
export async function withTimeLimit<T>(
  { timeoutMs, signal }: TimeLimit,
  work: (limit: Limit) => Promise<T>,
): Promise<T> {
  if (signal?.aborted) throw callerLeft();
  const limit = { reason: undefined as Error | undefined, onOver: (): void => undefined };
  const end = (reason: Error): void => {
    limit.reason = reason;
    (limit as Limit).onOver(reason);
  };
  const leave = (): void => {
    end(callerLeft());
  };
  const timer = setTimeout(() => {
    const detail = `no whole answer within ${Math.ceil(timeoutMs)} ms`;
    end(new ServiceError('UPSTREAM_TIMEOUT', { detail }));
  }, timeoutMs);
  signal?.addEventListener('abort', leave, { once: true });
  try {
    return await work(limit);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
}

/**
 * The same for work that listens to a signal. Not AbortSignal.timeout, which cannot be cleared, nor
 * AbortSignal.any, which may lose a timeout to the garbage collector (Node 20).
 */
export async function withSignal<T>(
  timeLimit: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withTimeLimit(timeLimit, (limit) => {
    const controller = new AbortController();
    limit.onOver = (reason) => {
      controller.abort(reason);
    };
    return untilAborted(work(controller.signal), controller.signal);
  });
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
