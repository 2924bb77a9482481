// Minted names whose response was lost, stored so that a repeated request gets the same name.
import { LRUCache } from 'lru-cache';
import type { RedisCommands } from '../cache/redis/commands.js';

/** Stores a name. ARGV: name, TTL (ms). */
export const STORE_UNCLAIMED = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Unclaimed names by `request`, a digest of the request in one word. */
export interface UnclaimedNames {
  add: (request: string, name: string) => Promise<void>;
  /** Removes and returns the oldest name of the request; undefined if there is none. */
  take: (request: string) => Promise<string | undefined>;
}

/** TTL of a name: programs retry within minutes, or later if they are restarted. */
const LIFE_MS = 3_600_000;
const MAX_REQUESTS = 10_000;

/** The names stored in this process while Redis is unavailable. */
class LocalUnclaimedNames {
  readonly #names = new LRUCache<string, { names: string[]; until: number }>({
    // The `max` option would preallocate memory for all requests.
    maxSize: MAX_REQUESTS,
    sizeCalculation: () => 1,
  });

  constructor(private readonly now: () => number) {}

  add(request: string, name: string): void {
    this.#set(request, [...this.#get(request), name]);
  }

  take(request: string): string | undefined {
    const [name, ...others] = this.#get(request);
    if (others.length === 0) this.#names.delete(request);
    else this.#set(request, others);
    return name;
  }

  #get(request: string): readonly string[] {
    const found = this.#names.get(request);
    return found === undefined || found.until <= this.now() ? [] : found.names;
  }

  #set(request: string, names: string[]): void {
    this.#names.set(request, { names, until: this.now() + LIFE_MS });
  }
}

/** Stores names in Redis, if it is given and available, otherwise in this process. */
export function createUnclaimedNames(now: () => number, shared?: RedisCommands): UnclaimedNames {
  const local = new LocalUnclaimedNames(now);
  const runShared: RedisCommands['run'] = (name, command) =>
    shared === undefined ? Promise.resolve(undefined) : shared.run(name, command);
  const redisKey = (request: string): string => `${shared?.keyPrefix ?? ''}unclaimed:${request}`;
  return {
    async add(request, name) {
      const isShared = await runShared('leave', (redis) =>
        redis.eval(STORE_UNCLAIMED, 1, redisKey(request), name, LIFE_MS),
      );
      if (isShared === undefined) local.add(request, name);
    },
    async take(request) {
      const name = await runShared('claim', (redis) => redis.lpop(redisKey(request)));
      return name ?? local.take(request);
    },
  };
}
