// A sorted set of the simulated Redis: members ordered by score, and by their bytes for equal scores.

export interface Scored {
  member: string;
  score: number;
}

export class SortedSet {
  readonly #scores: Map<string, number>;
  #sorted: Scored[] | undefined;

  constructor(scores: Iterable<[string, number]> = []) {
    this.#scores = new Map(scores);
  }

  get size(): number {
    return this.#scores.size;
  }

  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  set(member: string, score: number): void {
    this.#scores.set(member, score);
    this.#sorted = undefined;
  }

  delete(member: string): boolean {
    this.#sorted = undefined;
    return this.#scores.delete(member);
  }

  get sorted(): readonly Scored[] {
    this.#sorted ??= [...this.#scores]
      .map(([member, score]) => ({ member, score }))
      .sort((a, b) => (a.score === b.score ? (a.member < b.member ? -1 : 1) : a.score < b.score ? -1 : 1));
    return this.#sorted;
  }

  copy(): SortedSet {
    return new SortedSet(this.#scores);
  }
}
