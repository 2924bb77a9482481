// Bans: purges of many keys at once, applied to an entry when it is used (Varnish's lazy bans).
import { type Times, asStale } from '../entry.js';

/** All keys that begin with `prefix`; every key when it is empty. */
export interface Ban {
  prefix: string;
  /** The entry stays, as a stale one. */
  isSoft: boolean;
}

/** `number` grows from ban to ban. */
export interface NumberedBan extends Ban {
  number: number;
}

/** Each load and each use of an older entry looks through the bans that are newer than itself. */
export const MAX_BANS = 200;

/** When there are too many, the oldest becomes a floor: an older entry counts as banned, whatever its key. */
export class Bans {
  /** The oldest first. */
  #bans: NumberedBan[] = [];
  #floor = { hard: 0, soft: 0 };
  /** The server run that has given the numbers. */
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

  /** False: it is known, or a newer one does all that it does. */
  add(ban: NumberedBan): boolean {
    if (this.#isCovered(ban)) return false;
    this.#bans = [...this.#bans.filter((known) => !covers(ban, known)), ban];
    this.#bans.sort((one, other) => one.number - other.number);
    if (this.#bans.length <= MAX_BANS) return true;
    const dropped = this.#bans.shift();
    if (dropped) this.#floor[dropped.isSoft ? 'soft' : 'hard'] = dropped.number;
    return true;
  }

  /** Bans up to this number are not known one by one: they ban every key. */
  raiseFloor(number: number): void {
    this.#floor.hard = Math.max(this.#floor.hard, number);
  }

  /** Whether a ban of the key is newer than the number. */
  isSince(key: string, number: number): boolean {
    if (number < this.#floor.hard || number < this.#floor.soft) return true;
    for (let at = this.#bans.length - 1; at >= 0; at--) {
      const ban = this.#bans[at];
      if (ban === undefined || ban.number <= number) return false;
      if (key.startsWith(ban.prefix)) return true;
    }
    return false;
  }

  /** Applies the bans newer than `number` to an entry; undefined when one of them deletes it. */
  apply<T extends Times>(key: string, entry: T, number: number): T | undefined {
    if (number < this.#floor.hard) return undefined;
    if (number >= this.latest) return entry;
    let left = number < this.#floor.soft ? asStale(entry) : entry;
    for (const ban of this.#bans) {
      if (ban.number <= number || !key.startsWith(ban.prefix)) continue;
      if (!ban.isSoft) return undefined;
      left = asStale(left);
    }
    return left;
  }

  #isCovered(ban: NumberedBan): boolean {
    if (ban.number <= Math.max(this.#floor.hard, this.#floor.soft)) return true;
    return this.#bans.some((known) => known.number === ban.number || covers(known, ban));
  }
}

/** Whether `ban` does all that the older one does. */
const covers = (ban: NumberedBan, older: NumberedBan): boolean =>
  ban.number > older.number && older.prefix.startsWith(ban.prefix) && (!ban.isSoft || older.isSoft);
