// Key groups, and the last message number of each group: a gap in the numbers reveals missed messages.

/** Number of key groups. The keys of a group share a Redis hash tag, so that one script may access all of them. */
export const GROUPS = 1024;

/** A key group. Bans affect keys of every group, so they are numbered separately. */
export type Group = number | 'bans';

/** Returns the 32-bit FNV-1a hash of the UTF-16 code units: evenly spread, and the same in all processes. */
export function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

export const groupOf = (key: string): number => hashOf(key) % GROUPS;

/** The last message number of a group. Numbers of different server runs are not comparable. */
export interface GroupNumber {
  run: string;
  seq: number;
}

const NOTHING: GroupNumber = { run: '', seq: -Infinity };

export class GroupNumbers {
  readonly #known = new Map<Group, GroupNumber>();

  /** Records a message number; ignores older numbers. Returns false if earlier messages were missed. */
  advance(group: Group, seq: number): boolean {
    const known = this.#known.get(group) ?? NOTHING;
    if (seq <= known.seq) return true;
    this.#known.set(group, { run: known.run, seq });
    return seq === known.seq + 1;
  }

  /** Adopts the number stored in Redis. Returns false if it differs from the known number: messages were missed. */
  adopt(group: Group, { run, seq }: GroupNumber): boolean {
    const known = this.#known.get(group);
    this.#known.set(group, { run, seq });
    return known?.run === run && known.seq === seq;
  }
}
