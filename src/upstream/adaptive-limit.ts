// Adapts a Handle server's concurrency limit to its latency: additive increase, multiplicative decrease.

interface LimitBounds {
  min: number;
  max: number;
}

export interface AdaptiveLimit {
  limit: number;
  /** Median latency without load (ms); undefined while none is known. */
  quietMs: number | undefined;
}

/** Observations since the last limit change. */
interface LimitSample {
  /** Infinity for a timeout, or for a rejection by a busy server. */
  latenciesMs: readonly number[];
  /** Peak concurrency during the sample. */
  running: number;
}

/**
 * A server counts as busy above `factor` × quiet latency + `addedMs`; the addition
 * allows for noise on fast servers.
 */
const TOLERANCE = { factor: 2, addedMs: 10 };
const DECREASE = { gentle: 0.9, hard: 0.5 };

/**
 * Returns the limit after a sample. Requests beyond a server's capacity would queue inside it, where
 * their order cannot be controlled; the limit moves that queue to this process. The quiet latency is
 * re-measured whenever the limit is at its minimum, because a windowed minimum would rise with the
 * queue of a constantly busy server.
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
  // An unreached limit is no evidence for a higher limit.
  if (sample.running < state.limit) return { limit: state.limit, quietMs };
  return { limit: Math.min(max, state.limit + Math.ceil(state.limit / 10)), quietMs };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** Minimum size and duration (ms) of a sample. */
const SAMPLE = { requests: 10, durationMs: 100 };

/** Tracks a server's limit from its completed requests. */
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

  /** Records a completed request; `running` is the concurrency, including this request. */
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
