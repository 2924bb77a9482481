// Token buckets in this process and, with Redis, across all instances.
import { boundedMap } from '../../cache/bounded-map.js';
import type { RedisCommands } from '../../cache/redis/commands.js';

export interface BucketLimit {
  /** Refill interval of one token (ms). */
  intervalMs: number;
  /** Number of tokens in a full bucket. */
  burst: number;
}

export interface BucketState {
  /** Whether the tokens were taken: either all of them or none. */
  isTaken: boolean;
  left: number;
  /** Time until the bucket is full again (ms). */
  fullInMs: number;
}

/** Takes tokens from a named bucket. Redis is not contacted if the local bucket has too few. */
export type TakeTokens = (
  name: string,
  limit: BucketLimit,
  tokens: number,
) => BucketState | Promise<BucketState>;

/**
 * Takes tokens. A bucket is a single number, the time at which it is full (generic cell rate algorithm, ITU-T
 * I.371). ARGV: refill interval of a token (ms), tokens in a full bucket, tokens to take. Returns whether
 * they were taken, and the time until the bucket is full (ms). The Redis clock is used, because the clocks of
 * instances may differ. A bucket that needs longer than from empty to full is from before that clock was set back, or from
 * before a reload that raised its limit; the millisecond is for rounding.
 */
const TAKE_TOKENS = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local interval = tonumber(ARGV[1])
local debt = math.max(0, tonumber(redis.call('GET', KEYS[1]) or now) - now)
if debt > interval * ARGV[2] + 1 then debt = 0 end
local after = debt + interval * tonumber(ARGV[3])
if after > interval * tonumber(ARGV[2]) then return { 0, math.ceil(debt) } end
redis.call('SET', KEYS[1], string.format('%.3f', now + after), 'PX', math.ceil(after) + 1)
return { 1, math.ceil(after) }`;

/** Maximum number of buckets; above it, the least recently used buckets are reset to full. */
const MAX_NAMES = 100_000;

/** Creates buckets; rate-limiter-flexible has fixed windows, and uses Redis without our timeouts. */
export function createTokenBuckets(now: () => number, shared: RedisCommands | undefined): TakeTokens {
  /** Time at which each bucket is full (ms). */
  const fullAt = boundedMap<number>(MAX_NAMES);

  function takeHere(name: string, limit: BucketLimit, tokens: number): BucketState {
    const at = now();
    const debtMs = Math.max(0, (fullAt.get(name) ?? 0) - at);
    // A bucket that needs longer than from empty to full is from before a reload that raised its limit.
    const isFormer = debtMs > limit.intervalMs * limit.burst + 1;
    const taken = takeFrom(isFormer ? 0 : debtMs, limit, tokens);
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
        // The local bucket decides if Redis does not reply.
        if (isTaken === undefined || fullInMs === undefined) return here;
        if (isTaken === 0) fullAt.set(name, (fullAt.get(name) ?? 0) - tokens * intervalMs);
        return { isTaken: isTaken === 1, left: tokensLeft(fullInMs, limit), fullInMs };
      });
  };
}

function takeFrom(debtMs: number, limit: BucketLimit, tokens: number): BucketState {
  const afterMs = debtMs + limit.intervalMs * tokens;
  const isTaken = afterMs <= limit.intervalMs * limit.burst;
  const fullInMs = isTaken ? afterMs : debtMs;
  return { isTaken, left: tokensLeft(fullInMs, limit), fullInMs };
}

const tokensLeft = (fullInMs: number, { intervalMs, burst }: BucketLimit): number =>
  Math.max(0, Math.floor(burst - fullInMs / intervalMs));

/** Returns the time until the bucket contains `tokens`, or is full if it is too small for them (ms). */
export const untilTokens = (
  { fullInMs }: BucketState,
  { intervalMs, burst }: BucketLimit,
  tokens: number,
): number => Math.max(0, fullInMs - intervalMs * Math.max(0, burst - tokens));
