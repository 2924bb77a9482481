// Bans, as in Varnish: a ban purges all keys with a prefix, and is applied lazily when an entry is used.
import { type Times, asStale } from '../entry.js';

/** A ban of all keys with a prefix; an empty prefix matches every key. */
export interface Ban {
  prefix: string;
  /** Whether banned entries become stale instead of being deleted. */
  isSoft: boolean;
}

/** A ban with its sequence number; later bans have higher numbers. */
export interface NumberedBan extends Ban {
  number: number;
}

/** Maximum number of bans: each load, and each use of an older entry, is checked against all newer bans. */
export const MAX_BANS = 200;

/**
 * A bounded list of bans. Above the maximum, the oldest ban becomes the floor: all older entries count as
 * banned.
 */
export class Bans {
  /** Oldest first. */
  #bans: NumberedBan[] = [];
  #floor = { hard: 0, soft: 0 };

  /** `run`: the server run that assigned the numbers. */
  constructor(readonly run = '') {}

  get latest(): number {
    return this.#bans.at(-1)?.number ?? Math.max(this.#floor.hard, this.#floor.soft);
  }

  has(number: number): boolean {
    return this.#bans.some((known) => known.number === number);
  }

  /** Adds a ban. Returns false if it is known, or covered by a newer ban or by the floor. */
  add(ban: NumberedBan): boolean {
    if (this.#isCovered(ban)) return false;
    this.#bans = [...this.#bans.filter((known) => !covers(ban, known)), ban];
    this.#bans.sort((one, other) => one.number - other.number);
    if (this.#bans.length <= MAX_BANS) return true;
    const dropped = this.#bans.shift();
    if (dropped) this.#floor[dropped.isSoft ? 'soft' : 'hard'] = dropped.number;
    return true;
  }

  /**
   * Treats every key as banned up to this number, because Redis no longer lists those bans. Drops the bans that the
   * floor covers: after a flush it is above every known ban, and a load that started now would otherwise get the
   * number of an older ban and be refused.
   */
  raiseFloor(number: number): void {
    this.#floor.hard = Math.max(this.#floor.hard, number);
    this.#bans = this.#bans.filter((known) => known.number > number);
  }

  /** Whether a ban above this number matches the key. */
  isBannedSince(key: string, number: number): boolean {
    if (number < this.#floor.hard || number < this.#floor.soft) return true;
    for (let at = this.#bans.length - 1; at >= 0; at--) {
      const ban = this.#bans[at];
      if (ban === undefined || ban.number <= number) return false;
      if (key.startsWith(ban.prefix)) return true;
    }
    return false;
  }

  /** Applies the bans above `number` to an entry. Returns undefined if a hard ban deletes it. */
  apply<T extends Times>(key: string, entry: T, number: number): T | undefined {
    if (number < this.#floor.hard) return undefined;
    if (number >= this.latest) return entry;
    let allowed = number < this.#floor.soft ? asStale(entry) : entry;
    for (const ban of this.#bans) {
      if (ban.number <= number || !key.startsWith(ban.prefix)) continue;
      if (!ban.isSoft) return undefined;
      allowed = asStale(allowed);
    }
    return allowed;
  }

  #isCovered(ban: NumberedBan): boolean {
    if (ban.number <= Math.max(this.#floor.hard, this.#floor.soft)) return true;
    return this.#bans.some((known) => known.number === ban.number || covers(known, ban));
  }
}

/** Whether `ban` makes the older ban redundant. */
const covers = (ban: NumberedBan, older: NumberedBan): boolean =>
  ban.number > older.number && includes(ban, older);

/** Whether `ban` makes `other` redundant if both are published at the same time. */
export const includes = (ban: Ban, other: Ban): boolean =>
  other.prefix.startsWith(ban.prefix) && (!ban.isSoft || other.isSoft);
