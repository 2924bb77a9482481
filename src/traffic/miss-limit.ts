// Refuses the misses of limited networks, and counts those of other networks to decide whether to limit them.
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { LimitReason, LimitedNetworks } from '../coordination/limited-networks.js';
import { ServiceError } from '../errors.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { LimiterUsage } from '../upstream/concurrency-limiter.js';

interface MissLimitParts {
  networks: Pick<LimitedNetworks, 'find' | 'limit' | 'subscribe' | 'list'>;
  /** Handle servers. */
  servers: readonly { usage: () => { read: Pick<LimiterUsage, 'waiting' | 'limit'> } }[];
}

const WHY: Readonly<Record<LimitReason, string>> = {
  'unknown-names': 'too many reads of handles that do not exist',
  'most-misses': 'most of the reads while the Handle server is under pressure',
};

/** `settings` is called each time, because a reload may change them. */
export function createMissLimit(
  settings: () => { traffic: Pick<Config['traffic'], 'unknown'> },
  { metrics, clock: { now } }: Context,
  { networks, servers }: MissLimitParts,
): LimitMiss {
  const window = new MissWindow();
  metrics.registerLimitedNetworks(() => [networks.list().length]);
  // The queue is as long as the limit of concurrent reads.
  const isUnderPressure = (): boolean =>
    servers.map(({ usage }) => usage().read).some(({ waiting, limit }) => waiting >= limit);
  // A limited network starts from zero when its limit ends, even if another instance has set the limit.
  networks.subscribe((network) => {
    window.forget(network);
  });

  function assertNotLimited(network: string): void {
    const limited = networks.find(network);
    if (limited === undefined) return;
    metrics.countLimitedMiss(limited.reason);
    const detail = `${WHY[limited.reason]} from ${network}; cached records are served`;
    throw new ServiceError('RATE_LIMITED', { detail, retryAfterMs: limited.until - now() });
  }

  function count(network: string, added: Partial<MissCounts>): void {
    const at = now();
    if (networks.find(network) !== undefined) return;
    const { counts, pressedOfAll } = window.count(network, added, at);
    const reason = judgeMisses(counts, pressedOfAll, settings().traffic.unknown);
    if (reason === undefined) return;
    networks.limit({ network, until: at + settings().traffic.unknown.forMs, reason });
  }

  async function judge<T>(
    { network, isInBackground }: { network: string; isInBackground: boolean },
    read: () => Promise<T>,
    isUnknown: (answer: T) => boolean | undefined,
  ): Promise<T> {
    assertNotLimited(network);
    // Background requests already yield to others.
    if (!isInBackground && isUnderPressure()) {
      count(network, { pressed: 1 });
      assertNotLimited(network);
    }
    const answer = await read();
    const unknown = isUnknown(answer);
    if (unknown !== undefined) count(network, { answered: 1, unknown: unknown ? 1 : 0 });
    return answer;
  }

  return function limitMiss(caller, read, isUnknown) {
    const network = caller?.network;
    // A reload may have turned limits off since the request was judged.
    if (network === undefined || settings().traffic.unknown.perMinute === 0) return read();
    return judge({ network, isInBackground: caller?.class === 'background' }, read, isUnknown);
  };
}

/** The misses of one network in the current minute. */
interface MissCounts {
  /** Misses that were answered. */
  answered: number;
  /** Answered misses whose handle does not exist. */
  unknown: number;
  /** Misses that came while the upstream was under pressure. */
  pressed: number;
}

interface MissLimits {
  perMinute: number;
  notFoundShare: number;
}

/**
 * Limits a network that enumerates handles, or that makes most of the misses while the upstream is under pressure. A
 * network without competition takes nothing from others, so it may use the whole upstream.
 */
export function judgeMisses(
  { answered, unknown, pressed }: MissCounts,
  pressedOfAll: number,
  { perMinute, notFoundShare }: MissLimits,
): LimitReason | undefined {
  if (answered > perMinute && unknown >= notFoundShare * answered) return 'unknown-names';
  const isAlone = pressed === pressedOfAll;
  return pressed > perMinute && !isAlone && pressed > pressedOfAll / 2 ? 'most-misses' : undefined;
}

const WINDOW_MS = 60_000;
/** Above twice this number of networks, the counts of those quiet for longest are dropped. */
const MAX_RECENT = 10_000;

const NONE: MissCounts = { answered: 0, unknown: 0, pressed: 0 };

const sum = (one: MissCounts, other: MissCounts): MissCounts => ({
  answered: one.answered + other.answered,
  unknown: one.unknown + other.unknown,
  pressed: one.pressed + other.pressed,
});

/** Consecutive windows of one minute, the same for all networks. */
export class MissWindow {
  #startedAt = -Infinity;
  #pressedOfAll = 0;
  #recent = new Map<string, MissCounts>();
  /** Networks not counted since `#recent` was created. In a single map, deleting the first key repeatedly is slow. */
  #quiet = new Map<string, MissCounts>();

  /** @returns the counts of the network, this miss included, and the misses of all networks under pressure */
  count(
    network: string,
    added: Partial<MissCounts>,
    now: number,
  ): { counts: MissCounts; pressedOfAll: number } {
    if (now - this.#startedAt >= WINDOW_MS || now < this.#startedAt) this.#restart(now);
    const counts = sum(this.#recent.get(network) ?? this.#quiet.get(network) ?? NONE, { ...NONE, ...added });
    this.#pressedOfAll += added.pressed ?? 0;
    if (!this.#recent.has(network) && this.#recent.size >= MAX_RECENT) this.#age();
    this.#recent.set(network, counts);
    return { counts, pressedOfAll: this.#pressedOfAll };
  }

  forget(network: string): void {
    this.#recent.delete(network);
    this.#quiet.delete(network);
  }

  get size(): number {
    return this.#recent.size + this.#quiet.size;
  }

  #age(): void {
    this.#quiet = this.#recent;
    this.#recent = new Map();
  }

  #restart(now: number): void {
    this.#startedAt = now;
    this.#pressedOfAll = 0;
    this.#recent = new Map();
    this.#quiet = new Map();
  }
}
