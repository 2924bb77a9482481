// Fixed-window counters of a minute, in this process and, with Redis, over all instances.
import { LRUCache } from 'lru-cache';
import type { RedisCommands } from '../cache/redis/commands.js';

/**
 * ARGV: length of the window in ms, what to add, the limit. Above the limit nothing is added. Returns what the count
 * would be, and the rest of the window.
 */
export const COUNT = `
local count = tonumber(redis.call('GET', KEYS[1]) or '0') + ARGV[2]
if count <= tonumber(ARGV[3]) then redis.call('INCRBY', KEYS[1], ARGV[2]) end
local left = redis.call('PTTL', KEYS[1])
if left >= 0 then return { count, left } end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return { count, tonumber(ARGV[1]) }`;

export interface WindowCount {
  /** Above the limit when what was to be added did not fit: then nothing was. */
  count: number;
  /** Until the window ends. */
  leftMs: number;
}

interface Addition {
  limit: number;
  by: number;
}

/** Adds to the counter of `name` what fits under the limit; when it does not fit here, Redis is not contacted. */
export type Count = (name: string, addition: Addition) => WindowCount | Promise<WindowCount>;

interface Window {
  count: number;
  endsAt: number;
}

interface CounterDeps {
  now: () => number;
  shared?: Pick<RedisCommands, 'run' | 'isUp' | 'keyPrefix'>;
}

const WINDOW_MS = 60_000;
/** With more names than this, the least recently used counters start again. */
const MAX_NAMES = 100_000;

export function createCounter({ now, shared }: CounterDeps): Count {
  const windows = new LRUCache<string, Window>({
    // `max` would allocate for all names at once.
    maxSize: MAX_NAMES,
    sizeCalculation: () => 1,
  });

  function windowOf(name: string): Window {
    const at = now();
    const known = windows.get(name);
    if (known !== undefined && known.endsAt > at) return known;
    const window = { count: 0, endsAt: at + WINDOW_MS };
    windows.set(name, window);
    return window;
  }

  return function count(name, { limit, by }) {
    const window = windowOf(name);
    const here = { count: window.count + by, leftMs: window.endsAt - now() };
    if (here.count > limit) return here;
    window.count += by;
    if (shared === undefined || !shared.isUp()) return here;
    return shared
      .run('count', (redis) => redis.eval(COUNT, 1, `${shared.keyPrefix}count:${name}`, WINDOW_MS, by, limit))
      .then((reply) => {
        const [total, leftMs] = (reply ?? []) as [number?, number?];
        // Without Redis the count of this process decides.
        if (total === undefined || leftMs === undefined) return here;
        if (total > limit) window.count -= by;
        return { count: total, leftMs };
      });
  };
}
