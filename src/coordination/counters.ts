// Fixed-window counters of a minute, in this process and, with Redis, over all instances.
import { LRUCache } from 'lru-cache';
import type { RedisCommands } from '../cache/redis/commands.js';

/** ARGV: length of the window in ms. Returns the count in the window and the rest of the window. */
export const COUNT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return { count, redis.call('PTTL', KEYS[1]) }`;

interface WindowCount {
  count: number;
  /** Until the window ends. */
  leftMs: number;
}

/** Increments the counter of `name`; above `limit` in this process Redis is not contacted. */
export type Count = (name: string, limit: number) => WindowCount | Promise<WindowCount>;

interface CounterDeps {
  now: () => number;
  shared?: Pick<RedisCommands, 'run' | 'isUp' | 'keyPrefix'>;
}

const WINDOW_MS = 60_000;
/** With more names than this, the least recently used counters start again. */
const MAX_NAMES = 100_000;

export function createCounter({ now, shared }: CounterDeps): Count {
  const windows = new LRUCache<string, { count: number; endsAt: number }>({
    // `max` would allocate for all names at once.
    maxSize: MAX_NAMES,
    sizeCalculation: () => 1,
  });

  function countHere(name: string): WindowCount {
    const at = now();
    let window = windows.get(name);
    if (window === undefined || window.endsAt <= at) {
      window = { count: 0, endsAt: at + WINDOW_MS };
      windows.set(name, window);
    }
    window.count++;
    return { count: window.count, leftMs: window.endsAt - at };
  }

  return function count(name, limit) {
    const here = countHere(name);
    if (shared === undefined || here.count > limit || !shared.isUp()) return here;
    return shared
      .run('count', (redis) => redis.eval(COUNT, 1, `${shared.keyPrefix}count:${name}`, WINDOW_MS))
      .then((reply) => {
        const [total, leftMs] = (reply ?? []) as [number?, number?];
        // Without Redis the count of this process decides.
        return total === undefined || leftMs === undefined ? here : { count: total, leftMs };
      });
  };
}
