// Bounded map with a fixed TTL; the oldest entries are evicted first.

/** `ttlMs`: 0 disables the map. */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, { value: Value; expiresAt: number }>();

  constructor(private readonly options: { ttlMs: number; maxEntries: number; now: () => number }) {}

  set(key: string, value: Value): void {
    const { ttlMs, maxEntries, now } = this.options;
    // Re-inserting moves the key to the end, so entries stay in expiry order.
    this.#entries.delete(key);
    if (ttlMs > 0) this.#entries.set(key, { value, expiresAt: now() + ttlMs });
    for (const [oldest, { expiresAt }] of this.#entries) {
      if (expiresAt > now() && this.#entries.size <= maxEntries) break;
      this.#entries.delete(oldest);
    }
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.expiresAt > this.options.now() ? entry.value : undefined;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** Whether the text begins with a key of the map. */
  hasPrefixOf(text: string): boolean {
    for (const key of this.#entries.keys()) if (text.startsWith(key) && this.has(key)) return true;
    return false;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  deleteUnder(prefix: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(prefix)) this.#entries.delete(key);
  }
}
