// Minted names whose response was lost, kept so that the same request sent again gets the same name.
import { LRUCache } from 'lru-cache';
import type { KeyLock } from './key-lock.js';
import type { RedisCommands } from '../cache/redis/commands.js';

/** ARGV: a name, its life in ms. */
export const STORE_UNCLAIMED = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Sends a line to all other workers; resolves when every one of them has applied it. */
export type BroadcastToWorkers = (line: string) => Promise<void>;

/** `request` is a digest of the request, one word. */
export interface UnclaimedNames {
  add: (request: string, name: string) => Promise<void>;
  /** Removes and returns the oldest name of the request; undefined when there is none. */
  take: (request: string) => Promise<string | undefined>;
}

interface UnclaimedDeps {
  local: LocalUnclaimedNames;
  /** Of this machine. */
  lock: KeyLock;
  /** To the other workers of this machine, when there are any. */
  broadcast?: BroadcastToWorkers;
  shared?: Pick<RedisCommands, 'run' | 'keyPrefix'>;
}

/** Programs retry within minutes; a restarted one may take longer. */
const LIFE_MS = 3_600_000;
const MAX_REQUESTS = 10_000;

/** The names in this process; all workers of a machine have the same. */
export class LocalUnclaimedNames {
  readonly #names = new LRUCache<string, { names: string[]; until: number }>({
    // `max` would allocate for all requests at once.
    maxSize: MAX_REQUESTS,
    sizeCalculation: () => 1,
  });

  constructor(private readonly now: () => number) {}

  get(request: string): readonly string[] {
    const found = this.#names.get(request);
    return found === undefined || found.until <= this.now() ? [] : found.names;
  }

  add(request: string, name: string): void {
    this.#names.set(request, { names: [...this.get(request), name], until: this.now() + LIFE_MS });
  }

  remove(request: string, name: string): void {
    const names = this.get(request).filter((other) => other !== name);
    if (names.length === 0) this.#names.delete(request);
    else this.#names.set(request, { names, until: this.now() + LIFE_MS });
  }

  /** Applies the change of another worker; ignores lines of another kind. */
  receive(line: string): void {
    const [, kind, request = '', name = ''] = /^(added|taken) (\S+) ([^]*)$/.exec(line) ?? [];
    if (kind === 'added') this.add(request, name);
    if (kind === 'taken') this.remove(request, name);
  }
}

/** In Redis while it is available, else in all workers of this machine. */
export function createUnclaimedNames({ local, lock, broadcast, shared }: UnclaimedDeps): UnclaimedNames {
  const run: RedisCommands['run'] = (name, command) =>
    shared === undefined ? Promise.resolve(undefined) : shared.run(name, command);
  const redisKey = (request: string): string => `${shared?.keyPrefix ?? ''}unclaimed:${request}`;

  /** Under a lock, because another worker may take the same name at this moment. */
  async function takeLocal(request: string): Promise<string | undefined> {
    if (local.get(request).length === 0) return undefined;
    return lock(`unclaimed:${request}`, async () => {
      const [name] = local.get(request);
      if (name === undefined) return undefined;
      local.remove(request, name);
      await broadcast?.(`taken ${request} ${name}`);
      return name;
    });
  }

  return {
    async add(request, name) {
      const isShared = await run('leave', (redis) =>
        redis.eval(STORE_UNCLAIMED, 1, redisKey(request), name, LIFE_MS),
      );
      if (isShared !== undefined) return;
      local.add(request, name);
      await broadcast?.(`added ${request} ${name}`);
    },
    async take(request) {
      const name = await run('claim', (redis) => redis.lpop(redisKey(request)));
      return name ?? takeLocal(request);
    },
  };
}
