// Mercy for a struggling Handle server: one second try for a cut connection, and rest after many failures.
import {
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
  handleWhenResult,
  isBrokenCircuitError,
  retry,
} from 'cockatiel';
import { ServiceError } from '../errors.js';
import { isConnectionFailure } from './failure.js';

export type BreakerState = 'closed' | 'half-open' | 'open';

export interface BreakerOptions {
  /** Failures in a row that open the breaker. */
  failures: number;
  openForMs: number;
  onBreaker?: ((state: BreakerState) => void) | undefined;
}

export interface Breaker {
  /** `isProbe` is true for the one question that decides whether the breaker closes again. */
  run<T>(work: (isProbe: boolean) => Promise<T>): Promise<T>;
  state(): BreakerState;
}

type Settled<T> = { counts: false; value: T } | { counts: boolean; error: unknown };

const STATES: Record<CircuitState, BreakerState> = {
  [CircuitState.Closed]: 'closed',
  [CircuitState.HalfOpen]: 'half-open',
  [CircuitState.Open]: 'open',
  [CircuitState.Isolated]: 'open',
};

/** Counts ServiceErrors as failures; anything else, such as a caller who left, tells nothing. */
export function createBreaker({ failures, openForMs, onBreaker }: BreakerOptions): Breaker {
  const policy = circuitBreaker(
    handleWhenResult((result) => (result as Settled<unknown>).counts),
    { halfOpenAfter: openForMs, breaker: new ConsecutiveBreaker(failures) },
  );
  let timesOpened = 0;
  let lastFailure: unknown;
  policy.onStateChange((state) => {
    if (state === CircuitState.Open) timesOpened++;
    onBreaker?.(STATES[state]);
  });

  /** A question older than the last opening must not undo what a later probe found. */
  async function settle<T>(work: (isProbe: boolean) => Promise<T>): Promise<Settled<T>> {
    const begunAt = timesOpened;
    try {
      return { counts: false, value: await work(policy.state !== CircuitState.Closed) };
    } catch (error) {
      const isFailure = error instanceof ServiceError;
      if (isFailure) lastFailure = error;
      return { counts: isFailure && begunAt === timesOpened, error };
    }
  }

  return {
    state: () => STATES[policy.state],
    async run(work) {
      const settled = await policy
        .execute(() => settle(work))
        .catch((error: unknown) => {
          if (!isBrokenCircuitError(error)) throw error;
          throw new ServiceError('UPSTREAM_RESTING', { cause: lastFailure, retryAfterMs: openForMs });
        });
      if ('error' in settled) throw settled.error;
      return settled.value;
    },
  };
}

const secondTry = retry(handleWhen(isConnectionFailure), { maxAttempts: 1 });

/** Runs a read, and once more on a fresh connection when the connection was at fault. */
export function retryOnFresh<T>(read: (fresh: boolean) => Promise<T>): Promise<T> {
  return secondTry.execute(({ attempt }) => read(attempt > 0));
}
