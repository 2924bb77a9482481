// The number of the last message of each group. Numbers follow one another, so a gap shows that messages were missed.

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
