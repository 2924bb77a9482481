// Networks whose misses are temporarily refused, shared by all instances through Redis.
import { ServiceError } from '../../errors.js';
import type { RedisCommands } from '../../cache/redis/commands.js';
import type { Host } from '../../host.js';
import type { Context } from '../../context.js';
import { LIMIT_REASONS, type LimitReason, type TrafficConfig } from './plugin.js';

interface LimitedNetwork {
  /** The network as `networkOf` formats it. */
  network: string;
  /** End of the limit (ms since the epoch). */
  until: number;
  reason: LimitReason;
}

interface LimitEntry extends LimitedNetwork {
  /** Whether this instance has set the limit. */
  isOwn: boolean;
  /** Whether Redis has stored the limit. If so, the limit also ends when another instance removes it there. */
  isShared: boolean;
}

/** Maximum number of limited networks; above it, the oldest limit ends. */
const MAX_NETWORKS = 10_000;

/**
 * Stores a limit. KEYS: a sorted set with the end of each limit as score. ARGV: now, end of the limit,
 * member, time until the end (ms). The first write is a deletion, because a full Redis (noeviction) refuses a
 * script whose first write needs memory.
 */
const LIMIT_NETWORK = `
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
return redis.call('PEXPIRE', KEYS[1], math.max(ARGV[4], redis.call('PTTL', KEYS[1])))`;

/**
 * The limited networks. Call `refresh` about once a second, because instances learn from Redis when a limit
 * starts or ends.
 */
export class LimitedNetworks {
  readonly #log: Context['log'];
  /** Wall clock: instances share the ends of limits. */
  readonly #now: () => number;
  readonly #shared: RedisCommands | undefined;
  readonly #entries = new Map<string, LimitEntry>();
  #onLimited: (network: string) => void = () => undefined;

  constructor({ log, clock }: Context, shared?: RedisCommands) {
    this.#log = log;
    this.#now = clock.wall;
    this.#shared = shared;
  }

  /** Calls `listener` for each network that any instance limits. */
  subscribe(listener: (network: string) => void): void {
    this.#onLimited = listener;
  }

  find(network: string): LimitedNetwork | undefined {
    const entry = this.#entries.get(network);
    return entry !== undefined && entry.until > this.#now() ? entry : undefined;
  }

  list(): LimitedNetwork[] {
    const now = this.#now();
    return [...this.#entries.values()]
      .filter(({ until }) => until > now)
      .map(({ network, until, reason }) => ({ network, until, reason }));
  }

  limit(limited: LimitedNetwork): void {
    const { network, until, reason } = limited;
    this.#put({ ...limited, isOwn: true, isShared: false });
    this.#log.warn(shown(limited), 'network limited for its misses');
    const at = this.#now();
    const sharing = this.#shared?.run('limit', (redis) =>
      redis.eval(LIMIT_NETWORK, 1, this.#key(), at, until, `${reason} ${network}`, until - at),
    );
    // Any instance may end the limit from now on.
    void sharing?.then((reply) => {
      const entry = this.#entries.get(network);
      if (entry && reply !== undefined) entry.isShared = true;
    });
  }

  /**
   * Ends a limit here and in Redis. Returns whether it existed. @throws ServiceError when Redis does not
   * reply
   */
  async lift(network: string): Promise<boolean> {
    const members = LIMIT_REASONS.map((reason) => `${reason} ${network}`);
    const shared = this.#shared;
    const removed = await shared?.run('limit', (redis) => redis.zrem(this.#key(), ...members));
    // The next refresh would otherwise restore the limit.
    if (shared !== undefined && removed === undefined)
      throw new ServiceError('INVALIDATION_UNCONFIRMED', { retryAfterMs: 1000 });
    const isKnown = this.find(network) !== undefined;
    this.#drop(network);
    return isKnown || (removed ?? 0) > 0;
  }

  /** Drops expired limits, and loads the limits of other instances. */
  async refresh(): Promise<void> {
    const now = this.#now();
    for (const { network, until } of [...this.#entries.values()]) if (until <= now) this.#drop(network);
    const listed = await this.#shared?.run('limit', (redis) =>
      redis.zrangebyscore(this.#key(), `(${now}`, '+inf', 'WITHSCORES', 'LIMIT', 0, MAX_NETWORKS),
    );
    if (listed !== undefined) this.#follow(listed);
  }

  /** Ends all limits in this instance. */
  clear(): void {
    for (const network of [...this.#entries.keys()]) this.#drop(network);
  }

  /** Adopts the limits in Redis. `listed`: members and scores, alternating. */
  #follow(listed: readonly string[]): void {
    const inRedis = new Set<string | undefined>();
    for (let at = 0; at < listed.length; at += 2) {
      inRedis.add(this.#receive(listed[at] ?? '', Number(listed[at + 1])));
    }
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
    const isShared = entry.isShared || known?.isShared === true;
    const until = Math.max(entry.until, known?.until ?? 0);
    this.#entries.set(entry.network, { ...entry, until, isOwn, isShared });
    this.#onLimited(entry.network);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_NETWORKS && oldest !== undefined) this.#drop(oldest);
  }

  #drop(network: string): void {
    const entry = this.#entries.get(network);
    if (entry === undefined || !this.#entries.delete(network) || !entry.isOwn) return;
    this.#log.info(shown(entry), 'network no longer limited');
  }

  #key(): string {
    return `${this.#shared?.keyPrefix ?? ''}limited`;
  }
}

const REFRESH_MS = 1000;

/** Creates the limited networks, and refreshes them until the proxy closes. */
export function createLimitedNetworks(host: Host<TrafficConfig>): LimitedNetworks {
  const { settings, cache, hooks } = host;
  const networks = new LimitedNetworks(host, cache.commands);
  const timer = setInterval(() => {
    if (settings.current.traffic.enumeration.perMinute > 0) void networks.refresh();
    else networks.clear();
  }, REFRESH_MS).unref();
  hooks.close.push(() => {
    clearInterval(timer);
  });
  return networks;
}

/** Returns a limit as it is logged by the instance that has set it. */
const shown = ({ network, reason, until }: LimitedNetwork): object => ({
  network,
  reason,
  until: new Date(until).toISOString(),
});
