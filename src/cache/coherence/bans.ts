// Bans, as in Varnish: a ban purges all keys with a prefix, and is applied lazily when an entry is used.
import { type Times, asStale } from '../entry.js';
import { PrefixMap } from '../../handle/prefix-map.js';

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

/** Maximum number of bans that Redis lists. */
export const MAX_LISTED_BANS = 200;
/** Maximum number of banned prefixes, and of bans that wait for Redis: each takes some 200 bytes until the process ends. */
export const MAX_BANNED = 10_000;

/** The numbers of the latest bans of a prefix; 0 for none. */
interface BanNumbers {
  hard: number;
  soft: number;
}

/**
 * The latest bans of each prefix. Above the maximum, the oldest becomes the floor: all older entries count as banned. A
 * record without a server is then lost, because nothing can bring it back.
 */
export class Bans {
  /** The prefix with the latest ban last. */
  readonly #byPrefix = new PrefixMap<BanNumbers>();
  readonly #floor: BanNumbers = { hard: 0, soft: 0 };
  #latest = 0;

  /** `run`: the server run that assigned the numbers. */
  constructor(readonly run = '') {}

  get latest(): number {
    return this.#latest;
  }

  has({ prefix, isSoft, number }: NumberedBan): boolean {
    return this.#byPrefix.get(prefix)?.[isSoft ? 'soft' : 'hard'] === number;
  }

  /** Adds a ban. Returns false if it is known, or covered by a newer ban or by the floor. */
  add(ban: NumberedBan): boolean {
    if (this.#isCovered(ban)) return false;
    const { prefix, isSoft, number } = ban;
    this.#latest = Math.max(this.#latest, number);
    const { hard, soft } = this.#byPrefix.get(prefix) ?? { hard: 0, soft: 0 };
    this.#byPrefix.set(prefix, isSoft ? { hard, soft: number } : { hard: number, soft });
    if (this.#byPrefix.size > MAX_BANNED) this.#dropOldest();
    return true;
  }

  /**
   * Treats every key as banned up to this number, because Redis no longer lists those bans. Drops the bans that the
   * floor covers: after a flush it is above every known ban, and a load that started now would otherwise get the
   * number of an older ban and be refused.
   */
  raiseFloor(number: number): void {
    this.#floor.hard = Math.max(this.#floor.hard, number);
    this.#latest = Math.max(this.#latest, number);
    for (const [prefix, { hard, soft }] of this.#byPrefix.entries())
      if (Math.max(hard, soft) <= number) this.#byPrefix.delete(prefix);
  }

  /** Whether a ban above this number matches the key. */
  isBannedSince(key: string, number: number): boolean {
    if (number < Math.max(this.#floor.hard, this.#floor.soft)) return true;
    if (number >= this.#latest) return false;
    for (const { hard, soft } of this.#byPrefix.matching(key)) if (Math.max(hard, soft) > number) return true;
    return false;
  }

  /** Applies the bans above `number` to an entry. Returns undefined if a hard ban deletes it. */
  apply<T extends Times>(key: string, entry: T, number: number): T | undefined {
    if (number < this.#floor.hard) return undefined;
    if (number >= this.#latest) return entry;
    let isStale = number < this.#floor.soft;
    for (const { hard, soft } of this.#byPrefix.matching(key)) {
      if (hard > number) return undefined;
      isStale ||= soft > number;
    }
    return isStale ? asStale(entry) : entry;
  }

  #dropOldest(): void {
    const [[prefix, numbers] = ['', this.#floor] as const] = this.#byPrefix.entries();
    this.#byPrefix.delete(prefix);
    this.#floor.hard = Math.max(this.#floor.hard, numbers.hard);
    this.#floor.soft = Math.max(this.#floor.soft, numbers.soft);
  }

  #isCovered({ prefix, isSoft, number }: NumberedBan): boolean {
    if (number <= Math.max(this.#floor.hard, this.#floor.soft)) return true;
    for (const { hard, soft } of this.#byPrefix.matching(prefix))
      if (number <= (isSoft ? Math.max(hard, soft) : hard)) return true;
    return false;
  }
}
