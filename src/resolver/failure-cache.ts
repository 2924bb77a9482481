// Recent failures of loads. Until one expires, its handle is not requested again (RFC 8767 §5, RFC 9520 §3.2).
import { ServiceError } from '../errors.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import { scopeOf } from '../upstream/failure.js';

/** Maximum number of failed keys; above it, the oldest failed key may be loaded again. */
const MAX_FAILURES = 100_000;

export class FailureCache {
  /** The error that all readers share; true if it says nothing about the handle. */
  readonly #failures: ExpiringMap<ServiceError | true>;

  constructor(options: { ttlMs: number; now: () => number }) {
    this.#failures = new ExpiringMap({ ...options, maxEntries: MAX_FAILURES });
  }

  /** Whether the last load has failed, so that a stale entry is served without a new load. */
  has(key: string): boolean {
    return this.#failures.has(key);
  }

  /** @throws ServiceError the failure that all readers of the key share */
  assertNone(key: string): void {
    const failure = this.#failures.get(key);
    if (failure instanceof ServiceError) throw failure;
  }

  add(key: string, failure?: unknown): void {
    const isShared = failure instanceof ServiceError && isOfHandle(failure);
    this.#failures.set(key, isShared ? withinBounds(failure) : (this.#failures.get(key) ?? true));
  }

  delete(key: string): void {
    this.#failures.delete(key);
  }

  deleteUnder(prefix: string): void {
    this.#failures.deleteUnder(prefix);
  }
}

/** Errors that say nothing about the handle: a busy or paused server, or this proxy's own limits. */
const NOT_OF_HANDLE: readonly unknown[] = ['UPSTREAM_BACKOFF', 'UPSTREAM_BUSY', 'OVERLOADED'];

const isOfHandle = (failure: ServiceError): boolean =>
  !NOT_OF_HANDLE.includes(failure.code) && scopeOf(failure) !== 'connection';

/** Maximum length of cached error members; longer ones are dropped from the cached error. */
const MAX_ANSWER_CHARS = 4096;

function withinBounds(failure: ServiceError): ServiceError {
  const { message, upstreamAnswer } = failure;
  const isShort = JSON.stringify(upstreamAnswer?.members ?? {}).length <= MAX_ANSWER_CHARS;
  return isShort ? failure : new ServiceError(failure, { message });
}
