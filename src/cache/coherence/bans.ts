// Bans: one ban purges many keys; it is applied to an entry when the entry is used (Varnish's lazy bans).
import { type Times, asStale } from '../entry.js';

/** Bans every key that begins with `prefix`; an empty prefix bans all keys. */
export interface Ban {
  prefix: string;
  /** A soft ban makes entries stale; a hard one deletes them. */
  isSoft: boolean;
}

/** A later ban has a higher number. */
export interface NumberedBan extends Ban {
  number: number;
}

/** Bounded, because each load and each use of an older entry is checked against all newer bans. */
export const MAX_BANS = 200;

/** Above the maximum, the oldest ban becomes a floor: every entry from before it counts as banned. */
export class Bans {
  /** Oldest first. */
  #bans: NumberedBan[] = [];
  #floor = { hard: 0, soft: 0 };
  /** The server run that the numbers belong to. */
  readonly run: string;

  constructor(run = '') {
    this.run = run;
  }

  /** The number of the newest ban. */
  get latest(): number {
    return this.#bans.at(-1)?.number ?? Math.max(this.#floor.hard, this.#floor.soft);
  }

  has(number: number): boolean {
    return this.#bans.some((known) => known.number === number);
  }

  /** Returns false if the ban is known, or a newer one covers it. */
  add(ban: NumberedBan): boolean {
    if (this.#isCovered(ban)) return false;
    this.#bans = [...this.#bans.filter((known) => !covers(ban, known)), ban];
    this.#bans.sort((one, other) => one.number - other.number);
    if (this.#bans.length <= MAX_BANS) return true;
    const dropped = this.#bans.shift();
    if (dropped) this.#floor[dropped.isSoft ? 'soft' : 'hard'] = dropped.number;
    return true;
  }

  /** Treats every key as banned up to this number: those bans are not listed any more. */
  raiseFloor(number: number): void {
    this.#floor.hard = Math.max(this.#floor.hard, number);
  }

  /** Whether the key has a ban with a higher number. */
  isBannedSince(key: string, number: number): boolean {
    if (number < this.#floor.hard || number < this.#floor.soft) return true;
    for (let at = this.#bans.length - 1; at >= 0; at--) {
      const ban = this.#bans[at];
      if (ban === undefined || ban.number <= number) return false;
      if (key.startsWith(ban.prefix)) return true;
    }
    return false;
  }

  /** Applies the bans above `number` to an entry; undefined when one of them deletes it. */
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

/** Whether `ban` makes the older one redundant. */
const covers = (ban: NumberedBan, older: NumberedBan): boolean =>
  ban.number > older.number && includes(ban, older);

/** Whether `ban` affects everything that `other` affects, if both are published at the same time. */
export const includes = (ban: Ban, other: Ban): boolean =>
  other.prefix.startsWith(ban.prefix) && (!ban.isSoft || other.isSoft);
