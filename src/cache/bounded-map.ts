// A map that evicts the least recently used entry above a number of entries, without preallocating memory.
import { LRUCache } from 'lru-cache';
import { entriesOf } from '../handle/handle.js';

interface Options<Value> {
  /** Life of an entry (ms), by `now`; unlimited if it is missing. */
  ttl?: number;
  now?: () => number;
  /** Called for each entry that leaves the map. */
  dispose?: LRUCache.Disposer<string, Value>;
}

/** A long key counts as several entries. */
export const boundedMap = <Value extends object | number | true>(
  maxEntries: number,
  { now, ...options }: Options<Value> = {},
): LRUCache<string, Value> =>
  new LRUCache<string, Value>({
    // The `max` option would preallocate memory for all entries.
    maxSize: maxEntries,
    sizeCalculation: (_value, key) => entriesOf(key),
    ttlResolution: 0,
    ...(now && { perf: { now } }),
    ...options,
  });
