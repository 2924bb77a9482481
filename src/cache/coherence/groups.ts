// Key groups, and the number of the last message of each: a gap in the numbers shows that messages were missed.

/** The keys of a group share a hash tag in Redis, so that one script may touch all of them. */
export const GROUPS = 1024;

/** Bans concern keys of every group, so they are numbered separately. */
export type Group = number | 'bans';

/** FNV-1a over UTF-16 units, 32 bits: spreads keys evenly, and is the same in every process. */
export function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

export const groupOf = (key: string): number => hashOf(key) % GROUPS;

/** Numbers of two server runs cannot be compared. */
export interface GroupNumber {
  run: string;
  seq: number;
}

const NOTHING: GroupNumber = { run: '', seq: -Infinity };

export class GroupNumbers {
  readonly #known = new Map<Group, GroupNumber>();

  /** Records the number of a message. Returns false if messages before it were missed. An older number changes nothing. */
  advance(group: Group, seq: number): boolean {
    const known = this.#known.get(group) ?? NOTHING;
    if (seq <= known.seq) return true;
    this.#known.set(group, { run: known.run, seq });
    return seq === known.seq + 1;
  }

  /** Adopts the number that Redis holds. Returns false if it differs from the known one: messages were missed. */
  adopt(group: Group, { run, seq }: GroupNumber): boolean {
    const known = this.#known.get(group);
    this.#known.set(group, { run, seq });
    return known?.run === run && known.seq === seq;
  }
}
