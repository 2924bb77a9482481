// Keys by group. The keys of a group in Redis share a hash tag, so that one script may touch all of them.

export const GROUPS = 1024;

/** FNV-1a over UTF-16 units, 32 bits: spreads keys evenly, and is the same in every process. */
export function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

export const groupOf = (key: string): number => hashOf(key) % GROUPS;

export type Group = number | 'bans';

/** Numbers of two server runs say nothing of each other. */
export interface GroupNumber {
  run: string;
  seq: number;
}

export class GroupNumbers {
  readonly #known = new Map<Group, GroupNumber>();

  /** False: messages before this one were missed. What was read from the state already is no news. */
  isNext(group: Group, seq: number): boolean {
    const known = this.#known.get(group) ?? NOTHING;
    if (seq <= known.seq) return true;
    this.#known.set(group, { run: known.run, seq });
    return seq === known.seq + 1;
  }

  /** Takes over what was read from the state of a group. False: it is another one than the known one. */
  isSame(group: Group, { run, seq }: GroupNumber): boolean {
    const known = this.#known.get(group);
    this.#known.set(group, { run, seq });
    return known?.run === run && known.seq === seq;
  }
}

const NOTHING: GroupNumber = { run: '', seq: -Infinity };
