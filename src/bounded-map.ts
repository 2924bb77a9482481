// A map that evicts the least recently used entry above a number of entries, without memory for entries that it may get.
import { LRUCache } from 'lru-cache';

type Bounds<V> = Omit<LRUCache.OptionsBase<string, V, unknown>, 'maxSize'> & { now?: () => number };

/** Creates a map that evicts the least recently used entry above `maxEntries`. */
export const boundedMap = <V extends object | number | true>(
  maxEntries: number,
  { now, ...others }: Bounds<V> = {},
): LRUCache<string, V> =>
  new LRUCache<string, V>({
    // The `max` option would preallocate memory for all entries.
    maxSize: maxEntries,
    sizeCalculation: () => 1,
    ttlResolution: 0,
    ...(now && { perf: { now } }),
    ...others,
  });
