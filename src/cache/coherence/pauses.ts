// Notices that this process was paused, by SIGSTOP, a suspended machine or a blocked event loop.
import type { Clock } from '../clock.js';
import { LEASE_MS, type Moment } from './lease.js';

/**
 * Maximum time between two beats of a process that was not paused; beats are due every 500 ms. A pause that
 * outlasts a lease exceeds it, because a member with a working Redis has at least 1.5 s of its lease left.
 */
const MAX_BEAT_GAP_MS = LEASE_MS / 2;

export class PauseDetector {
  readonly #clock: Clock;
  /** The last beat, or the moment at which a later pause was noticed. */
  #seen: Moment;
  /** End of the last pause (monotonic, ms). */
  #resumedAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#seen = this.#moment();
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
    const at = this.#moment();
    // A suspended machine may stop the monotonic clock.
    const gapMs = Math.max(at.monotonic - this.#seen.monotonic, at.now - this.#seen.now);
    if (gapMs > MAX_BEAT_GAP_MS) {
      this.#seen = at;
      this.#resumedAt = at.monotonic;
    }
    return at;
  }

  #moment(): Moment {
    return { monotonic: this.#clock.monotonic(), now: this.#clock.now() };
  }
}
