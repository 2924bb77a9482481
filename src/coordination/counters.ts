// Counts things in windows of a minute: in this process, and over all instances where there is a Redis.
import { LRUCache } from 'lru-cache';
import type { RedisCommands } from '../cache/redis/commands.js';
import { COUNT } from './scripts.js';

export interface WindowCount {
  count: number;
  /** Until the window ends. */
  leftMs: number;
}

/** Counts one more of `name`; beyond `limit` nobody else is asked. */
export type Count = (name: string, limit: number) => WindowCount | Promise<WindowCount>;

export interface CounterDeps {
  now: () => number;
  shared?: Pick<RedisCommands, 'run' | 'isUp' | 'keyPrefix'>;
}

const WINDOW_MS = 60_000;
/** A flood from more addresses than this makes the oldest count from nothing again. */
const MAX_NAMES = 100_000;

export function createCounter({ now, shared }: CounterDeps): Count {
  const windows = new LRUCache<string, { count: number; endsAt: number }>({ max: MAX_NAMES });

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
        const [made, leftMs] = (reply ?? []) as [number?, number?];
        // Redis is a helper: without it this process counts alone.
        return made === undefined || leftMs === undefined ? here : { count: made, leftMs };
      });
  };
}
