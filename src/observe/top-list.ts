// Most frequent names in bounded memory (space-saving algorithm).

export interface Ranked {
  name: string;
  count: number;
}

const MAX_NAMES = 500;
const GENERATION_MS = 5 * 60_000;

/**
 * Counts names over the last five to ten minutes. When twice MAX_NAMES are known, the rarer half is dropped, and a new
 * name starts with the largest dropped count (space-saving, in batches): a frequent name is never missing, and a count
 * may be too high but never too low.
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
    this.#rotate();
    this.#young.add(name, count);
  }

  top(max: number): Ranked[] {
    this.#rotate();
    const sums = new Map(this.#young.counts);
    for (const [name, count] of this.#old.counts) sums.set(name, (sums.get(name) ?? 0) + count);
    return [...sums]
      .map(([name, count]) => ({ name, count }))
      .sort((one, other) => other.count - one.count || (one.name < other.name ? -1 : 1))
      .slice(0, max);
  }

  #rotate(): void {
    const age = this.#now() - this.#bornAt;
    if (age < GENERATION_MS) return;
    this.#old = age < 2 * GENERATION_MS ? this.#young : new Sketch();
    this.#young = new Sketch();
    this.#bornAt = this.#now();
  }
}

class Sketch {
  readonly counts = new Map<string, number>();
  #floor = 0;

  add(name: string, count: number): void {
    this.counts.set(name, (this.counts.get(name) ?? this.#floor) + count);
    if (this.counts.size < 2 * MAX_NAMES) return;
    // Numbers alone, because they sort faster than names with a comparison. Of equal counts the oldest are dropped.
    const ascending = Float64Array.from(this.counts.values()).sort();
    this.#floor = ascending.at(-MAX_NAMES - 1) ?? 0;
    for (const [known, times] of this.counts) {
      if (this.counts.size === MAX_NAMES) return;
      if (times <= this.#floor) this.counts.delete(known);
    }
  }
}
