// The number of the last message of each group. Numbers follow one another, so a gap shows that messages were missed.

export type Group = number | 'bans';

export class GroupNumbers {
  readonly #known = new Map<Group, number>();

  /** False: messages before this one were missed. What was read from the state already is no news. */
  isNext(group: Group, seq: number): boolean {
    const known = this.#known.get(group) ?? -Infinity;
    if (seq <= known) return true;
    this.#known.set(group, seq);
    return seq === known + 1;
  }

  /** Takes over what was read from the state of a group. False: it is another number than the known one. */
  isSame(group: Group, seq: number): boolean {
    const known = this.#known.get(group);
    this.#known.set(group, seq);
    return known === seq;
  }
}
