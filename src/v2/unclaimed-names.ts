// Minted names whose response was lost, stored so that a repeated request gets the same name.
import { LRUCache } from 'lru-cache';
import type { RedisCommands } from '../cache/redis/commands.js';

/** Stores a name. ARGV: name, TTL (ms). */
export const STORE_UNCLAIMED = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Unclaimed names by `request`, a digest of the request in one word. */
export type UnclaimedNames = ReturnType<typeof createUnclaimedNames>;

/** TTL of a name: programs retry within minutes, or later if they are restarted. */
const LIFE_MS = 3_600_000;
const MAX_REQUESTS = 10_000;

/** Stores names in Redis, if it is given and available, otherwise in this process. */
export function createUnclaimedNames(now: () => number, shared?: RedisCommands) {
  const local = new LRUCache<string, string[]>({
    // The `max` option would preallocate memory for all requests.
    maxSize: MAX_REQUESTS,
    sizeCalculation: () => 1,
    ttl: LIFE_MS,
    ttlResolution: 0,
    perf: { now },
  });
  const runShared: RedisCommands['run'] = (name, command) =>
    shared === undefined ? Promise.resolve(undefined) : shared.run(name, command);
  const redisKey = (request: string): string => `${shared?.keyPrefix ?? ''}unclaimed:${request}`;
  const setLocal = (request: string, names: string[]): void => {
    if (names.length === 0) local.delete(request);
    else local.set(request, names);
  };
  return {
    async add(request: string, name: string): Promise<void> {
      const isShared = await runShared('leave', (redis) =>
        redis.eval(STORE_UNCLAIMED, 1, redisKey(request), name, LIFE_MS),
      );
      if (isShared === undefined) setLocal(request, [...(local.get(request) ?? []), name]);
    },
    /** Removes and returns the oldest name of the request; undefined if there is none. */
    async take(request: string): Promise<string | undefined> {
      const name = await runShared('claim', (redis) => redis.lpop(redisKey(request)));
      if (name != null) return name;
      const [first, ...others] = local.get(request) ?? [];
      setLocal(request, others);
      return first;
    },
    async remove(request: string, name: string): Promise<void> {
      await runShared('claim', (redis) => redis.lrem(redisKey(request), 0, name));
      setLocal(
        request,
        (local.get(request) ?? []).filter((known) => known !== name),
      );
    },
  };
}
