// Handles that are not asked for again so soon, because the server failed to answer for them a moment ago.
import { ServiceError } from '../errors.js';
import { scopeOf } from './failure.js';

/** Of what a server said in its failure no more is kept than a message. */
const MAX_ANSWER_CHARS = 4096;

/**
 * Failures by key, as resolvers of the DNS keep theirs (RFC 9520 §3.2), in bounded space: the oldest is dropped
 * first. Every caller gets the failure, and the server is asked once in that time.
 */
export class FailedHandles {
  readonly #failures = new Map<string, { failure: ServiceError; until: number }>();

  constructor(
    private readonly forMs: number,
    private readonly now: () => number,
    private readonly mostKeys = 10_000,
  ) {}

  /** Asks the server, or gives the failure of a moment ago. An authoritative question is asked always. */
  async run<T>(
    { key, authoritative }: { key: string; authoritative: boolean },
    ask: () => Promise<T>,
  ): Promise<T> {
    const held = authoritative ? undefined : this.#failures.get(key);
    if (held !== undefined && held.until > this.now()) throw held.failure;
    try {
      const answer = await ask();
      this.forget(key);
      return answer;
    } catch (error) {
      if (error instanceof ServiceError) this.#failed(key, error);
      throw error;
    }
  }

  /** Not for what says nothing of the handle: a server that cannot be reached, or is busy, is the breaker's matter. */
  #failed(key: string, failure: ServiceError): void {
    if (this.forMs === 0 || NOT_OF_HANDLE.has(failure.code) || scopeOf(failure) === 'connection') return;
    this.#failures.delete(key);
    this.#failures.set(key, { failure: bounded(failure), until: this.now() + this.forMs });
    // Keys stand in the order of their times, so those that are over are the first.
    for (const [first, { until }] of this.#failures) {
      if (until > this.now() && this.#failures.size <= this.mostKeys) break;
      this.#failures.delete(first);
    }
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  forgetWhere(isForgotten: (key: string) => boolean): void {
    for (const key of this.#failures.keys()) if (isForgotten(key)) this.#failures.delete(key);
  }
}

const NOT_OF_HANDLE = new Set(['UPSTREAM_RESTING', 'UPSTREAM_BUSY', 'OVERLOADED']);

function bounded(failure: ServiceError): ServiceError {
  const { code, message, upstreamAnswer } = failure;
  const isShort = JSON.stringify(upstreamAnswer?.members ?? {}).length <= MAX_ANSWER_CHARS;
  return isShort ? failure : new ServiceError(code, { message });
}
