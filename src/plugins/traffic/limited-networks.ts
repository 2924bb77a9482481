// Networks whose misses are temporarily refused, shared by all instances through Redis.
import { repeat } from '../../clock.js';
import { ServiceError } from '../../errors.js';
import type { RedisCommands } from '../../cache/redis/commands.js';
import type { Host } from '../../host.js';
import type { Context } from '../../context.js';
import { LIMIT_REASONS, type LimitReason, type TrafficConfig } from './plugin.js';

interface LimitedNetwork {
  /** The network as `networkOf` formats it. */
  network: string;
  /** End of the limit, by `Clock.now` (ms). */
  until: number;
  reason: LimitReason;
}

interface LimitEntry extends LimitedNetwork {
  isOwn: boolean;
  /** Whether Redis has stored the limit. If so, the limit also ends when another instance removes it there. */
  isShared: boolean;
}

/** Maximum number of limited networks; above it, the oldest limit ends. */
const MAX_NETWORKS = 10_000;

/** The Redis clock (ms) is used, because the clocks of instances may differ, or be set. */
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * Stores a limit. KEYS: a sorted set with the end of each limit as score. ARGV: time until the end (ms), member.
 * The first write is a deletion, because a full Redis (noeviction) refuses a script whose first write needs
 * memory.
 */
const LIMIT_NETWORK = `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[2])
return redis.call('PEXPIRE', KEYS[1], math.max(ARGV[1], redis.call('PTTL', KEYS[1])))`;

/**
 * Returns the members, each with the time until its end (ms). ARGV: the longest limit (ms), the maximum number of
 * members. A member that ends later was stored before the clock was set back, and would outlast its limit.
 */
const LIST_LIMITED = `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + ARGV[1] + 1, '+inf')
local from = string.format('(%.0f', now)
local listed = redis.call('ZRANGEBYSCORE', KEYS[1], from, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for at = 2, #listed, 2 do listed[at] = listed[at] - now end
return listed`;

/** Call `refreshFromRedis` each second, because instances learn from Redis when a limit starts or ends. */
export class LimitedNetworks {
  readonly #entries = new Map<string, LimitEntry>();
  /** Called for each network that any instance limits. */
  onLimited: (network: string) => void = () => undefined;

  constructor(
    private readonly context: Context,
    private readonly shared?: RedisCommands,
  ) {}

  find(network: string): LimitedNetwork | undefined {
    const entry = this.#entries.get(network);
    return entry !== undefined && entry.until > this.context.clock.now() ? entry : undefined;
  }

  /** Returns the limits with their ends by the wall clock. */
  limits(): LimitedNetwork[] {
    const now = this.context.clock.now();
    return [...this.#entries.values()]
      .filter(({ until }) => until > now)
      .map(({ network, until, reason }) => ({ network, until: this.#wallTime(until), reason }));
  }

  limit(limited: LimitedNetwork): void {
    const { network, until, reason } = limited;
    this.#put({ ...limited, isOwn: true, isShared: false });
    this.context.log.warn(this.#shown(limited), 'network limited for its misses');
    const leftMs = until - this.context.clock.now();
    const sharing = this.shared?.run('limit', (redis) =>
      redis.eval(LIMIT_NETWORK, 1, this.#key(), leftMs, `${reason} ${network}`),
    );
    // Any instance may end the limit from now on.
    void sharing?.then((reply) => {
      const entry = this.#entries.get(network);
      if (entry && reply !== undefined) entry.isShared = true;
    });
  }

  /** Ends a limit here and in Redis. Returns whether it existed. @throws ServiceError without a reply */
  async lift(network: string): Promise<boolean> {
    const members = LIMIT_REASONS.map((reason) => `${reason} ${network}`);
    const shared = this.shared;
    const removed = await shared?.run('limit', (redis) => redis.zrem(this.#key(), ...members));
    // The next refresh would otherwise restore the limit.
    if (shared !== undefined && removed === undefined)
      throw new ServiceError('INVALIDATION_UNCONFIRMED', {
        detail: 'Redis is unavailable',
        retryAfterMs: 1000,
      });
    const isKnown = this.find(network) !== undefined;
    this.#drop(network);
    return isKnown || (removed ?? 0) > 0;
  }

  /** Drops expired limits, and loads the limits of other instances. `maxMs`: the longest limit. */
  async refreshFromRedis(maxMs: number): Promise<void> {
    const now = this.context.clock.now();
    for (const { network, until } of [...this.#entries.values()]) if (until <= now) this.#drop(network);
    const listed = await this.shared?.run('limit', (redis) =>
      redis.eval(LIST_LIMITED, 1, this.#key(), maxMs, MAX_NETWORKS),
    );
    if (listed !== undefined) this.#follow(listed as (string | number)[]);
  }

  clear(): void {
    for (const network of [...this.#entries.keys()]) this.#drop(network);
  }

  /** Adopts the limits in Redis. `listed`: members and the times until their ends, alternating. */
  #follow(listed: readonly (string | number)[]): void {
    const now = this.context.clock.now();
    const inRedis = new Set<string | undefined>();
    for (let at = 0; at < listed.length; at += 2)
      inRedis.add(this.#receive(String(listed[at]), now + Number(listed[at + 1])));
    for (const { network, isShared } of [...this.#entries.values()]) {
      if (isShared && !inRedis.has(network)) this.#drop(network);
    }
  }

  #receive(member: string, until: number): string | undefined {
    const [given, network] = member.split(' ');
    const reason = LIMIT_REASONS.find((known) => known === given);
    if (reason === undefined || network === undefined) return undefined;
    this.#put({ network, until, reason, isOwn: false, isShared: true });
    return network;
  }

  #put(entry: LimitEntry): void {
    const known = this.#entries.get(entry.network);
    const isOwn = entry.isOwn || known?.isOwn === true;
    const until = Math.max(entry.until, known?.until ?? 0);
    this.#entries.set(entry.network, { ...entry, until, isOwn });
    this.onLimited(entry.network);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_NETWORKS && oldest !== undefined) this.#drop(oldest);
  }

  #drop(network: string): void {
    const entry = this.#entries.get(network);
    if (entry === undefined || !this.#entries.delete(network) || !entry.isOwn) return;
    this.context.log.info(this.#shown(entry), 'network no longer limited');
  }

  /** Returns a limit as it is logged by the instance that has set it. */
  #shown({ network, reason, until }: LimitedNetwork): object {
    return { network, reason, until: new Date(this.#wallTime(until)).toISOString() };
  }

  #wallTime(time: number): number {
    return time - this.context.clock.now() + this.context.clock.wall();
  }

  #key(): string {
    return `${this.shared?.keyPrefix ?? ''}limited`;
  }
}

const REFRESH_MS = 1000;

export function createLimitedNetworks(host: Host<TrafficConfig>): LimitedNetworks {
  const { settings, cache, hooks, clock } = host;
  const networks = new LimitedNetworks(host, cache.commands);
  const refresh = (): void => {
    const { perMinute, forMs } = settings.current.traffic.enumeration;
    if (perMinute > 0) void networks.refreshFromRedis(forMs);
    else networks.clear();
  };
  hooks.close.push(repeat(clock, REFRESH_MS, refresh));
  return networks;
}
