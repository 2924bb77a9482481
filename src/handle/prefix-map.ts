// A map by prefix that finds those of a key by their lengths, at the same cost for any number of prefixes.

export class PrefixMap<T> {
  readonly #values = new Map<string, T>();
  /** How many prefixes have a length. */
  readonly #lengths = new Map<number, number>();

  get size(): number {
    return this.#values.size;
  }

  get(prefix: string): T | undefined {
    return this.#values.get(prefix);
  }

  set(prefix: string, value: T): void {
    this.delete(prefix);
    this.#values.set(prefix, value);
    this.#lengths.set(prefix.length, (this.#lengths.get(prefix.length) ?? 0) + 1);
  }

  delete(prefix: string): void {
    if (!this.#values.delete(prefix)) return;
    const left = (this.#lengths.get(prefix.length) ?? 0) - 1;
    if (left > 0) this.#lengths.set(prefix.length, left);
    else this.#lengths.delete(prefix.length);
  }

  /** Returns the prefixes and their values, the last set last. */
  entries(): IterableIterator<[prefix: string, value: T]> {
    return this.#values.entries();
  }

  /** Yields the values of the prefixes of a key. */
  *matching(key: string): Generator<T, void> {
    for (const length of this.#lengths.keys()) {
      const value = length > key.length ? undefined : this.#values.get(key.slice(0, length));
      if (value !== undefined) yield value;
    }
  }
}
