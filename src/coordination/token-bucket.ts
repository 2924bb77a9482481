// Token buckets in this process and, with Redis, over all instances.
import { LRUCache } from 'lru-cache';
import type { RedisCommands } from '../cache/redis/commands.js';

export interface BucketLimit {
  /** Refill interval of one token (ms). */
  intervalMs: number;
  /** Tokens of a full bucket. */
  burst: number;
}

export interface BucketState {
  /** False if the bucket held too few tokens; then none was taken. */
  isTaken: boolean;
  left: number;
  /** Time until the bucket is full again. */
  fullInMs: number;
}

/** Takes tokens from the bucket of `name`. Redis is not contacted if this process has too few. */
export type TakeTokens = (
  name: string,
  limit: BucketLimit,
  tokens: number,
) => BucketState | Promise<BucketState>;

/**
 * One number is the whole bucket: the time until it is full (the generic cell rate algorithm, ITU-T I.371). ARGV: time
 * for a token in ms, tokens of a full bucket, tokens to take. Returns whether they were taken, and the time in ms until
 * the bucket is full. It uses the clock of Redis, because those of the instances may differ.
 */
const TAKE_TOKENS = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local interval = tonumber(ARGV[1])
local debt = math.max(0, tonumber(redis.call('GET', KEYS[1]) or now) - now)
local after = debt + interval * tonumber(ARGV[3])
if after > interval * tonumber(ARGV[2]) then return { 0, math.ceil(debt) } end
redis.call('SET', KEYS[1], string.format('%.3f', now + after), 'PX', math.ceil(after) + 1)
return { 1, math.ceil(after) }`;

interface TokenDeps {
  now: () => number;
  shared?: Pick<RedisCommands, 'run' | 'isUp' | 'keyPrefix'>;
}

/** Maximum number of buckets; beyond it the least recently used ones are full again. */
const MAX_NAMES = 100_000;

/**
 * Not rate-limiter-flexible: its limiters count in fixed windows, and would access Redis without the timeouts of
 * `redis.*`.
 */
export function createTokenBuckets({ now, shared }: TokenDeps): TakeTokens {
  /** Time at which each bucket will be full (ms). */
  const fullAt = new LRUCache<string, number>({
    // `max` would preallocate for all names.
    maxSize: MAX_NAMES,
    sizeCalculation: () => 1,
  });

  function takeHere(name: string, limit: BucketLimit, tokens: number): BucketState {
    const at = now();
    const taken = takeFrom(Math.max(0, (fullAt.get(name) ?? 0) - at), limit, tokens);
    if (taken.isTaken) fullAt.set(name, at + taken.fullInMs);
    return taken;
  }

  return function takeTokens(name, limit, tokens) {
    const here = takeHere(name, limit, tokens);
    if (!here.isTaken || shared === undefined || !shared.isUp()) return here;
    const { intervalMs, burst } = limit;
    return shared
      .run('count', (redis) =>
        redis.eval(TAKE_TOKENS, 1, `${shared.keyPrefix}bucket:${name}`, intervalMs, burst, tokens),
      )
      .then((reply) => {
        const [isTaken, fullInMs] = (reply ?? []) as [number?, number?];
        // Without Redis the bucket of this process decides.
        if (isTaken === undefined || fullInMs === undefined) return here;
        if (isTaken === 0) fullAt.set(name, (fullAt.get(name) ?? 0) - tokens * intervalMs);
        return { isTaken: isTaken === 1, left: tokensLeft(fullInMs, limit), fullInMs };
      });
  };
}

/** Takes tokens from a bucket that is full in `debtMs`. */
function takeFrom(debtMs: number, limit: BucketLimit, tokens: number): BucketState {
  const afterMs = debtMs + limit.intervalMs * tokens;
  const isTaken = afterMs <= limit.intervalMs * limit.burst;
  const fullInMs = isTaken ? afterMs : debtMs;
  return { isTaken, left: tokensLeft(fullInMs, limit), fullInMs };
}

const tokensLeft = (fullInMs: number, { intervalMs, burst }: BucketLimit): number =>
  Math.max(0, Math.floor(burst - fullInMs / intervalMs));

/** Time until the bucket holds `tokens`, or is full if it is too small for them (ms). */
export const untilTokens = (
  { fullInMs }: BucketState,
  { intervalMs, burst }: BucketLimit,
  tokens: number,
): number => Math.max(0, fullInMs - intervalMs * Math.max(0, burst - tokens));
