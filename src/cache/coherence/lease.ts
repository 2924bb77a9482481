// The cache lease, during which this instance has received every acknowledged change, and pauses of the process.
import type { Clock } from '../../clock.js';

/** Lease duration, counted from the request. */
export const LEASE_MS = 2000;
/** A larger shift between the wall clock and the monotonic clock means that the machine was paused. */
const MAX_CLOCK_SHIFT_MS = 250;
/** Maximum ratio between the rates of two machines' monotonic clocks. */
export const MAX_DRIFT = 1.1;
/** Maximum step of the Redis clock. */
export const MAX_REDIS_CLOCK_STEP_MS = 1000;
/** Time that other instances wait for a lease to end. */
export const LEASE_WAIT_MS = MAX_DRIFT * (LEASE_MS + MAX_CLOCK_SHIFT_MS);
/**
 * Maximum delay of a renewal by the Redis clock, which may be set back meanwhile. Once a member has acknowledged a write at a
 * different master, what it had sent to the former one is void.
 */
export const MAX_RENEWAL_DELAY_MS = LEASE_MS + MAX_CLOCK_SHIFT_MS - MAX_REDIS_CLOCK_STEP_MS;
/** Membership duration, longer than a lease, so that an instance with a lease is always listed. */
export const MEMBERSHIP_MS = 1.25 * LEASE_MS;
export const INSTANCE_LEASE_RENEWAL_MS = 500;

/** A moment on both clocks (ms). */
export interface Moment {
  monotonic: number;
  now: number;
}

const momentOf = (clock: Clock): Moment => ({ monotonic: clock.monotonic(), now: clock.now() });

export class Lease {
  #endsAt = -Infinity;
  /** Wall clock minus monotonic clock at the lease request (ms). */
  #shift = 0;

  constructor(private readonly clock: Clock) {}

  now(): Moment {
    return momentOf(this.clock);
  }

  /** Renews the lease. Everything published before `requestedAt` must have been received. */
  renew(requestedAt: Moment): void {
    this.#endsAt = requestedAt.monotonic + LEASE_MS;
    this.#shift = requestedAt.now - requestedAt.monotonic;
  }

  end(): void {
    this.#endsAt = -Infinity;
  }

  /** Returns the remaining lease time (ms); 0 without a lease, or after a clock shift. */
  leftMs(): number {
    const monotonic = this.clock.monotonic();
    if (monotonic >= this.#endsAt) return 0;
    const shift = this.clock.now() - monotonic - this.#shift;
    return Math.abs(shift) > MAX_CLOCK_SHIFT_MS ? 0 : this.#endsAt - monotonic;
  }
}

/**
 * Maximum time between two beats of a process that was not paused; beats are due every 500 ms. A pause that
 * outlasts a lease exceeds it, because a member with a working Redis has at least 1.5 s of its lease left.
 */
const MAX_BEAT_GAP_MS = LEASE_MS / 2;

/** Notices that this process was paused, by SIGSTOP, a suspended machine or a blocked event loop. */
export class PauseDetector {
  /** The last beat, or the moment at which a later pause was noticed. */
  #seen: Moment;
  /** End of the last pause (monotonic, ms). */
  #resumedAt = -Infinity;

  constructor(private readonly clock: Clock) {
    this.#seen = momentOf(clock);
  }

  /** Records that the process runs and has read the input that was ready. */
  beat(): void {
    this.#seen = this.#notice();
  }

  /**
   * Returns the time since the end of the last pause (ms); Infinity without a pause. Compares the clocks with
   * the last beat, because requests may be read before the timer of the next beat fires.
   */
  uninterruptedMs(): number {
    return this.#notice().monotonic - this.#resumedAt;
  }

  #notice(): Moment {
    const at = momentOf(this.clock);
    // A suspended machine may stop the monotonic clock.
    const gapMs = Math.max(at.monotonic - this.#seen.monotonic, at.now - this.#seen.now);
    if (gapMs > MAX_BEAT_GAP_MS) {
      this.#seen = at;
      this.#resumedAt = at.monotonic;
    }
    return at;
  }
}
