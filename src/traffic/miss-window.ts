// Whether a network is limited for its misses: counts by network within a minute, and the decision. Pure.
import type { LimitReason } from '../coordination/limited-networks.js';

/** The misses of one network in the current minute. */
export interface MissCounts {
  /** Misses that were answered. */
  answered: number;
  /** Those of them whose handle does not exist. */
  unknown: number;
  /** Misses that came while the upstream was under pressure. */
  pressed: number;
}

export interface MissLimits {
  perMinute: number;
  notFoundShare: number;
}

/**
 * Limits a network that enumerates handles, or that makes most of the misses while the upstream is under pressure. One
 * without competition takes nothing from others, so it may have the whole upstream.
 */
export function judgeMisses(
  { answered, unknown, pressed }: MissCounts,
  pressedOfAll: number,
  { perMinute, notFoundShare }: MissLimits,
): LimitReason | undefined {
  if (answered > perMinute && unknown >= notFoundShare * answered) return 'unknown-names';
  const isAlone = pressed === pressedOfAll;
  return pressed > perMinute && !isAlone && pressed > pressedOfAll / 2 ? 'most-misses' : undefined;
}

const WINDOW_MS = 60_000;
/** With twice as many networks, those that have been quiet for longest begin anew. */
const MAX_RECENT = 10_000;

const NONE: MissCounts = { answered: 0, unknown: 0, pressed: 0 };

const sum = (one: MissCounts, other: MissCounts): MissCounts => ({
  answered: one.answered + other.answered,
  unknown: one.unknown + other.unknown,
  pressed: one.pressed + other.pressed,
});

/** One minute after the other, the same for all networks. */
export class MissWindow {
  #startedAt = -Infinity;
  #pressedOfAll = 0;
  #recent = new Map<string, MissCounts>();
  /** Not counted since the recent ones began. Not one map in order of use: deleting its first again and again is slow. */
  #quiet = new Map<string, MissCounts>();

  /** @returns the counts of the network, this miss included, and the misses of all networks under pressure */
  count(
    network: string,
    added: Partial<MissCounts>,
    now: number,
  ): { counts: MissCounts; pressedOfAll: number } {
    if (now - this.#startedAt >= WINDOW_MS || now < this.#startedAt) this.#restart(now);
    const counts = sum(this.#recent.get(network) ?? this.#quiet.get(network) ?? NONE, { ...NONE, ...added });
    this.#pressedOfAll += added.pressed ?? 0;
    if (!this.#recent.has(network) && this.#recent.size >= MAX_RECENT) this.#age();
    this.#recent.set(network, counts);
    return { counts, pressedOfAll: this.#pressedOfAll };
  }

  forget(network: string): void {
    this.#recent.delete(network);
    this.#quiet.delete(network);
  }

  get size(): number {
    return this.#recent.size + this.#quiet.size;
  }

  #age(): void {
    this.#quiet = this.#recent;
    this.#recent = new Map();
  }

  #restart(now: number): void {
    this.#startedAt = now;
    this.#pressedOfAll = 0;
    this.#recent = new Map();
    this.#quiet = new Map();
  }
}
