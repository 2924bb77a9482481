// Negative cache of failures: a handle for which the server failed a moment ago is not requested again so soon.
import { ServiceError } from '../errors.js';
import { ExpiringMap } from './expiring-map.js';
import { scopeOf } from './failure.js';

/** RFC 9520 §3.2 has the same for DNS resolvers. Every caller gets the failure; the server gets one request. */
export interface FailureMemory {
  /** @throws ServiceError the failure that is remembered for a key */
  assertNone: (key: string) => void;
  /** Remembers what becomes of a load. */
  observe: <T>(key: string, load: Promise<T>) => Promise<T>;
  forget: (key: string) => void;
  forgetUnder: (prefix: string) => void;
}

const MAX_FAILURES = 10_000;

export function createFailureMemory(options: { ttlMs: number; now: () => number }): FailureMemory {
  const failures = new ExpiringMap<ServiceError>({ ...options, maxEntries: MAX_FAILURES });
  return {
    assertNone(key) {
      const failure = failures.get(key);
      if (failure) throw failure;
    },
    async observe(key, load) {
      try {
        const value = await load;
        failures.delete(key);
        return value;
      } catch (error) {
        if (error instanceof ServiceError && isOfHandle(error)) failures.set(key, withinBounds(error));
        throw error;
      }
    },
    forget(key) {
      failures.delete(key);
    },
    forgetUnder(prefix) {
      failures.deleteUnder(prefix);
    },
  };
}

/** A server that cannot be reached, or is busy, is the breaker's matter. */
const NOT_OF_HANDLE: readonly unknown[] = ['UPSTREAM_RESTING', 'UPSTREAM_BUSY', 'OVERLOADED'];

const isOfHandle = (failure: ServiceError): boolean =>
  !NOT_OF_HANDLE.includes(failure.code) && scopeOf(failure) !== 'connection';

/** No more of the server's own answer is kept than a message. */
const MAX_ANSWER_CHARS = 4096;

function withinBounds(failure: ServiceError): ServiceError {
  const { code, message, upstreamAnswer } = failure;
  const isShort = JSON.stringify(upstreamAnswer?.members ?? {}).length <= MAX_ANSWER_CHARS;
  return isShort ? failure : new ServiceError(code, { message });
}
