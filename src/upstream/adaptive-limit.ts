// How many requests a Handle server gets at a time: additive increase, multiplicative decrease, by latency.

interface LimitBounds {
  min: number;
  max: number;
}

export interface AdaptiveLimit {
  limit: number;
  /** Median latency of a server that is not busy (ms); undefined until there is a sample. */
  quietMs: number | undefined;
}

/** What was observed since the last change. */
interface LimitSample {
  /** Infinity for a request that timed out, or that the server refused because it is busy. */
  latenciesMs: readonly number[];
  /** Maximum requests in flight. */
  running: number;
}

/** A server that is busy takes longer than this factor and this addition, which leaves fast servers room for noise. */
const TOLERANCE = { factor: 2, addedMs: 10 };
const DECREASE = { gentle: 0.9, hard: 0.5 };

/**
 * The limit after a sample. More requests than a server has capacity for wait inside of it, where nobody can say which
 * of them is first: the limit moves this queue here. What is quiet is learnt anew each time the limit has fallen to its
 * minimum; a minimum over a time would rise with the queue of a server that is busy all the time.
 */
export function nextLimit(
  state: AdaptiveLimit,
  sample: LimitSample,
  { min, max }: LimitBounds,
): AdaptiveLimit {
  const medianMs = medianOf(sample.latenciesMs);
  const quietMs = state.limit <= min ? medianMs : Math.min(state.quietMs ?? medianMs, medianMs);
  if (quietMs === Infinity) return { limit: min, quietMs: undefined };
  const busyMs = TOLERANCE.factor * quietMs + TOLERANCE.addedMs;
  if (medianMs > busyMs) {
    const factor = Math.max(DECREASE.hard, Math.min(DECREASE.gentle, busyMs / medianMs));
    return { limit: Math.max(min, Math.floor(state.limit * factor)), quietMs };
  }
  // A limit that is not reached says nothing about a higher one.
  if (sample.running < state.limit) return { limit: state.limit, quietMs };
  return { limit: Math.min(max, state.limit + Math.ceil(state.limit / 10)), quietMs };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** A sample has at least this many requests and lasts at least this long (ms). */
const SAMPLE = { requests: 10, durationMs: 100 };

/** The limit of a server, from the requests that end. */
export class LimitTuner {
  readonly #bounds: LimitBounds;
  #state: AdaptiveLimit;
  #latenciesMs: number[] = [];
  #running = 0;
  #startedAt = -Infinity;

  constructor(bounds: LimitBounds) {
    this.#bounds = bounds;
    this.#state = { limit: bounds.max, quietMs: undefined };
  }

  get limit(): number {
    return this.#state.limit;
  }

  /** A request has ended; `running` includes it. */
  observe(latencyMs: number, { running, now }: { running: number; now: number }): void {
    if (this.#latenciesMs.length === 0) this.#startedAt = now - (latencyMs === Infinity ? 0 : latencyMs);
    this.#latenciesMs.push(latencyMs);
    this.#running = Math.max(this.#running, running);
    if (this.#latenciesMs.length < SAMPLE.requests || now - this.#startedAt < SAMPLE.durationMs) return;
    const sample = { latenciesMs: this.#latenciesMs, running: this.#running };
    this.#state = nextLimit(this.#state, sample, this.#bounds);
    this.#latenciesMs = [];
    this.#running = 0;
  }
}
