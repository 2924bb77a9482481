// A lease on the cache: while it runs, this instance has received every change that another one has acknowledged.
import type { Clock } from '../clock.js';

/** Length of a lease, from the moment when it was requested. */
export const LEASE_MS = 2000;
/** A larger shift between wall clock and monotonic clock means that the machine was paused. */
const MAX_CLOCK_SHIFT_MS = 250;
/** Monotonic clocks of two machines run at rates that differ by less than this factor. */
export const MAX_DRIFT = 1.1;
/** Maximum step of the Redis clock. */
export const MAX_REDIS_CLOCK_STEP_MS = 1000;
/** Time that other instances wait for the end of a lease. */
export const LEASE_WAIT_MS = MAX_DRIFT * (LEASE_MS + MAX_CLOCK_SHIFT_MS);
/** Longer than a lease, so that an instance is listed as long as it has one. */
export const MEMBERSHIP_MS = 1.25 * LEASE_MS;
export const INSTANCE_LEASE_RENEWAL_MS = 500;

/** A moment on both clocks. */
export interface Moment {
  monotonic: number;
  now: number;
}

export class Lease {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  #endsAt = -Infinity;
  /** Wall clock minus monotonic clock when the lease was requested. */
  #shift = 0;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  now(): Moment {
    return { monotonic: this.#clock.monotonic(), now: this.#clock.now() };
  }

  /** `requestedAt`: everything published before it has been received. */
  renew(requestedAt: Moment): void {
    this.#endsAt = requestedAt.monotonic + LEASE_MS;
    this.#shift = requestedAt.now - requestedAt.monotonic;
  }

  end(): void {
    this.#endsAt = -Infinity;
  }

  /** Remaining time (ms); 0 when it has ended. */
  leftMs(): number {
    const monotonic = this.#clock.monotonic();
    if (monotonic >= this.#endsAt) return 0;
    const shift = this.#clock.now() - monotonic - this.#shift;
    return Math.abs(shift) > MAX_CLOCK_SHIFT_MS ? 0 : this.#endsAt - monotonic;
  }
}
