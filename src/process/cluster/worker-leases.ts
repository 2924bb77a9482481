// Until when each worker of this machine may trust what it keeps, as the primary knows it.
import type { Clock } from '../../cache/clock.js';
import { LEASE_WAIT_MS } from '../../cache/coherence/lease.js';

export class WorkerLeases {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #ends = new Map<number, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The worker is told that its lease runs: it counts from the moment when it asked. */
  renewed(worker: number): void {
    this.#ends.set(worker, this.#clock.monotonic() + LEASE_WAIT_MS);
  }

  left(worker: number): void {
    this.#ends.delete(worker);
  }

  readonly isOver = (worker: number): boolean =>
    (this.#ends.get(worker) ?? -Infinity) <= this.#clock.monotonic();
}
