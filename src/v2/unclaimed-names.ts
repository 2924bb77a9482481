// Minted names whose response was lost, stored so that a repeated request gets the same name.
import { boundedMap } from '../cache/bounded-map.js';
import type { RedisCommands } from '../cache/redis/commands.js';
import { ServiceError } from '../errors.js';

type Redis = RedisCommands['redis'];

/** Stores a name. ARGV: name, TTL (ms). */
export const STORE_UNCLAIMED = `
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`;

/** Unclaimed names by `request`, a digest of the request in one word. */
export interface UnclaimedNames {
  add: (request: string, name: string) => Promise<void>;
  /** Removes and returns the request's oldest name, if any. @throws ServiceError LOCK_UNAVAILABLE if Redis is late */
  take: (request: string) => Promise<string | undefined>;
  remove: (request: string, name: string) => Promise<void>;
}

/** TTL of a name: programs retry within minutes, or later if they are restarted. */
const LIFE_MS = 3_600_000;
const MAX_REQUESTS = 10_000;
/** Timeout of a claim, longer than that of reads, because without an answer a POST fails. */
const ANSWER_MS = 2000;

/** Stores names in Redis, if it is given and available, otherwise in this process. */
export function createUnclaimedNames(now: () => number, commands?: RedisCommands): UnclaimedNames {
  const local = createLocalNames(now);
  const shared = commands && createSharedNames(commands, local);
  return {
    async add(request, name) {
      if ((await shared?.add(request, name)) !== true) local.add(request, name);
    },
    take: async (request) => (await shared?.take(request)) ?? local.take(request),
    async remove(request, name) {
      local.remove(request, name);
      await shared?.remove(request, name);
    },
  };
}

/** Names in Redis. `local`: names that Redis has not stored, or has stored after the timeout. */
function createSharedNames(commands: RedisCommands, local: ReturnType<typeof createLocalNames>) {
  const keyOf = (request: string): string => `${commands.keyPrefix}unclaimed:${request}`;
  const storeIn = (redis: Redis, request: string, name: string) =>
    redis.eval(STORE_UNCLAIMED, 1, keyOf(request), name, LIFE_MS);
  const removeIn = (redis: Redis, request: string, name: string) => redis.lrem(keyOf(request), 0, name);

  /** Returns whether Redis has stored the name in time. */
  async function add(request: string, name: string): Promise<boolean> {
    const store = (redis: Redis) => storeIn(redis, request, name);
    const stored = await runOrRepair(commands, 'leave', store, async (_, redis) => {
      // One copy is enough, or none if the local one has been assigned meanwhile.
      if (!local.remove(request, name)) await removeIn(redis, request, name);
    });
    return stored !== undefined;
  }

  /** Removes all copies of the name. Returns false if another request has done so. */
  async function claim(request: string, name: string): Promise<boolean> {
    const remove = (redis: Redis) => removeIn(redis, request, name);
    const restore = async (copies: number, redis: Redis): Promise<void> => {
      if (copies > 0) await storeIn(redis, request, name);
    };
    const removed = await runOrRepair(commands, 'claim', remove, restore, ANSWER_MS);
    const isMine = assertAnswered(removed) > 0;
    local.remove(request, name);
    return isMine;
  }

  /**
   * Reads before it removes: a Redis that hangs usually does so at the read, and would execute the removal later, when
   * nobody uses the name. While Redis is known to be unavailable, names in it are unknown.
   */
  async function take(request: string): Promise<string | undefined> {
    if (!commands.isUp()) return undefined;
    const oldest = await commands.run('claim', (redis) => redis.lindex(keyOf(request), 0), ANSWER_MS);
    const name = assertAnswered(oldest);
    if (name === null) return undefined;
    return (await claim(request, name)) ? name : take(request);
  }

  const remove = (request: string, name: string) =>
    commands.run('claim', (redis) => removeIn(redis, request, name));
  return { add, take, remove };
}

/**
 * Runs a command; undefined if it fails. `repair` undoes what Redis executes after the timeout, with the connection, because
 * `run` refuses commands until Redis counts as available again.
 */
async function runOrRepair<T>(
  commands: RedisCommands,
  name: 'leave' | 'claim',
  command: (redis: Redis) => Promise<T>,
  repair: (reply: T, redis: Redis) => Promise<void>,
  timeoutMs?: number,
): Promise<T | undefined> {
  let isLate = false;
  const send = (redis: Redis): Promise<T> => {
    const sent = command(redis);
    sent.then((late) => (isLate ? repair(late, redis) : undefined)).catch(() => undefined);
    return sent;
  };
  const reply = await commands.run(name, send, timeoutMs);
  isLate = reply === undefined;
  return reply;
}

/** Asserts a reply of Redis: without it, a repeated request would create a second handle. */
function assertAnswered<T>(reply: T | undefined): T {
  if (reply !== undefined) return reply;
  const detail = 'Redis did not answer whether an equal POST has already created a handle';
  throw new ServiceError('LOCK_UNAVAILABLE', { detail, retryAfterMs: 1000 });
}

/** Names in this process, each once for a request. */
function createLocalNames(now: () => number) {
  const names = boundedMap<string[]>(MAX_REQUESTS, { ttl: LIFE_MS, now });
  const others = (request: string, name: string): string[] =>
    (names.get(request) ?? []).filter((known) => known !== name);
  function remove(request: string, name: string): boolean {
    const isKnown = names.get(request)?.includes(name) === true;
    const left = others(request, name);
    if (left.length === 0) names.delete(request);
    else if (isKnown) names.set(request, left);
    return isKnown;
  }
  return {
    add(request: string, name: string): void {
      names.set(request, [...others(request, name), name]);
    },
    /** Returns whether the name was known. */
    remove,
    take(request: string): string | undefined {
      const [first] = names.get(request) ?? [];
      if (first !== undefined) remove(request, first);
      return first;
    },
  };
}
