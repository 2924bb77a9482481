// Which handles were written so short a time ago that a mirror may not know it yet.

/** Remembers keys for a while, in bounded space: the oldest is dropped first. */
export class RecentlyWritten {
  readonly #until = new Map<string, number>();

  constructor(
    private readonly forMs: number,
    private readonly now: () => number,
    private readonly mostKeys = 100_000,
  ) {}

  add(key: string): void {
    // Keys stand in the order of their times, so those that are over are the first.
    this.#until.delete(key);
    this.#until.set(key, this.now() + this.forMs);
    for (const [first, until] of this.#until) {
      if (until > this.now() && this.#until.size <= this.mostKeys) break;
      this.#until.delete(first);
    }
  }

  has(key: string): boolean {
    return (this.#until.get(key) ?? 0) > this.now();
  }
}
