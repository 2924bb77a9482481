// Adaptive concurrency limit of a Handle server: additive increase, multiplicative decrease, by latency.

interface LimitBounds {
  min: number;
  max: number;
}

export interface AdaptiveLimit {
  limit: number;
  /** Median latency without load (ms); undefined until there is a sample. */
  quietMs: number | undefined;
}

/** Observations since the previous change. */
interface LimitSample {
  /** Infinity for a timeout, or for a rejection because the server is busy. */
  latenciesMs: readonly number[];
  /** Maximum requests in flight. */
  running: number;
}

/** A server is busy above this multiple of the quiet latency plus this addition, which allows for noise of fast servers. */
const TOLERANCE = { factor: 2, addedMs: 10 };
const DECREASE = { gentle: 0.9, hard: 0.5 };

/**
 * The limit after a sample. Requests beyond the capacity of a server would queue inside it, in an order that nobody
 * controls; the limit moves this queue here. The quiet latency is measured again whenever the limit is at its minimum; a
 * minimum over a time window would rise with the queue of a server that is always busy.
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
  // A limit that was not reached is no evidence for a higher one.
  if (sample.running < state.limit) return { limit: state.limit, quietMs };
  return { limit: Math.min(max, state.limit + Math.ceil(state.limit / 10)), quietMs };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** A sample has at least this many requests and lasts at least this long (ms). */
const SAMPLE = { requests: 10, durationMs: 100 };

/** Tracks the limit of a server by its completed requests. */
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

  /** Records a completed request; `running` includes it. */
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
