// Counts the most frequent names in bounded memory (Space-Saving).

/**
 * When twice `maxNames` are known, the rarer half is dropped, and a new name starts with the largest dropped
 * count: a frequent name is never missing, and a count may be too high, but too low only after a merge.
 */
export class TopCounts {
  readonly counts = new Map<string, number>();
  /**
   * Maximum difference between a stored count and the exact count; 0 if every count is exact. A merge adds that of the
   * merged counts, because a name that they have dropped may have had up to this count.
   */
  floor = 0;

  constructor(private readonly maxNames: number) {}

  add(name: string, count: number): void {
    this.counts.set(name, (this.counts.get(name) ?? this.floor) + count);
    if (this.counts.size < 2 * this.maxNames) return;
    // Sorts only the counts, which is faster than sorting names. Among equal counts, the oldest are dropped.
    const ascending = Float64Array.from(this.counts.values()).sort();
    const dropped = ascending.at(-this.maxNames - 1) ?? 0;
    this.floor = Math.max(this.floor, dropped);
    for (const [known, times] of this.counts) {
      if (this.counts.size === this.maxNames) return;
      if (times <= dropped) this.counts.delete(known);
    }
  }
}
