// The names that are counted most often, in bounded memory.

export interface Ranked {
  name: string;
  count: number;
}

const MOST_NAMES = 500;
const GENERATION_MS = 5 * 60_000;

/**
 * Counts names of the last five to ten minutes. When twice as many are known as are kept, the rarer
 * half is dropped, and who comes new begins with the count of the largest that was (space-saving, in
 * batches): a frequent name is never missing, a count may be too large, never too small.
 */
export class TopList {
  readonly #now: () => number;
  #young = new Sketch();
  #old = new Sketch();
  #bornAt: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#bornAt = now();
  }

  add(name: string, count = 1): void {
    this.#age();
    this.#young.add(name, count);
  }

  top(most: number): Ranked[] {
    this.#age();
    return mergeRanked([this.#young.ranked(), this.#old.ranked()], most);
  }

  #age(): void {
    const age = this.#now() - this.#bornAt;
    if (age < GENERATION_MS) return;
    this.#old = age < 2 * GENERATION_MS ? this.#young : new Sketch();
    this.#young = new Sketch();
    this.#bornAt = this.#now();
  }
}

class Sketch {
  #counts = new Map<string, number>();
  #floor = 0;

  add(name: string, count: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? this.#floor) + count);
    if (this.#counts.size < 2 * MOST_NAMES) return;
    const sorted = [...this.#counts].sort(([, one], [, other]) => other - one);
    this.#floor = sorted[MOST_NAMES]?.[1] ?? 0;
    this.#counts = new Map(sorted.slice(0, MOST_NAMES));
  }

  ranked(): Ranked[] {
    return [...this.#counts].map(([name, count]) => ({ name, count }));
  }
}

/** Several lists as one, the most frequent first. */
export function mergeRanked(lists: readonly (readonly Ranked[])[], most: number): Ranked[] {
  const sums = new Map<string, number>();
  for (const { name, count } of lists.flat()) sums.set(name, (sums.get(name) ?? 0) + count);
  return [...sums]
    .map(([name, count]) => ({ name, count }))
    .sort((one, other) => other.count - one.count || (one.name < other.name ? -1 : 1))
    .slice(0, most);
}
