// Bounded map with a fixed TTL; the oldest entries are evicted first.
import { entriesOf } from '../handle/handle.js';

/** A long key counts as several entries. `ttlMs`: 0 disables the map. */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, { value: Value; expiresAt: number }>();
  #count = 0;

  constructor(private readonly options: { ttlMs: number; maxEntries: number; now: () => number }) {}

  /** Returns whether an entry was evicted before it expired. */
  set(key: string, value: Value): boolean {
    const { ttlMs, maxEntries, now } = this.options;
    // Re-inserting moves the key to the end, so entries stay in expiry order.
    this.delete(key);
    if (ttlMs === 0) return false;
    this.#entries.set(key, { value, expiresAt: now() + ttlMs });
    this.#count += entriesOf(key);
    let isEvicted = false;
    for (const [oldest, { expiresAt }] of this.#entries) {
      if (expiresAt > now() && this.#count <= maxEntries) break;
      if (expiresAt > now()) isEvicted = true;
      this.delete(oldest);
    }
    return isEvicted;
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
    if (this.#entries.delete(key)) this.#count -= entriesOf(key);
  }

  deleteUnder(prefix: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(prefix)) this.delete(key);
  }
}
