// Refuses the misses of limited networks, and counts those of the others until one of them has to be limited.
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { LimitReason, LimitedNetworks } from '../coordination/limited-networks.js';
import { ServiceError } from '../errors.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { LimiterUsage } from '../upstream/concurrency-limiter.js';
import { type MissCounts, MissWindow, judgeMisses } from './miss-window.js';

interface MissLimitParts {
  networks: Pick<LimitedNetworks, 'find' | 'limit' | 'subscribe' | 'list'>;
  /** The Handle servers. */
  servers: readonly { usage: () => { read: Pick<LimiterUsage, 'waiting' | 'limit'> } }[];
}

const WHY: Readonly<Record<LimitReason, string>> = {
  'unknown-names': 'too many reads of handles that do not exist',
  'most-misses': 'most of the reads while the Handle server is under pressure',
};

/** `settings`: `traffic.unknown` as it is now; a reload may change it. */
export function createMissLimit(
  settings: () => Config['traffic']['unknown'],
  { metrics, clock: { now } }: Context,
  { networks, servers }: MissLimitParts,
): LimitMiss {
  const window = new MissWindow();
  metrics.registerLimitedNetworks(() => [networks.list().length]);
  // The queue is as long as the limit of concurrent reads.
  const isUnderPressure = (): boolean =>
    servers.map(({ usage }) => usage().read).some(({ waiting, limit }) => waiting >= limit);
  // When its limit ends, a network begins anew, also where another instance has limited it.
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
    const reason = judgeMisses(counts, pressedOfAll, settings());
    if (reason === undefined) return;
    networks.limit({ network, until: at + settings().forMs, reason });
  }

  async function judge<T>(
    { network, isInBackground }: { network: string; isInBackground: boolean },
    read: () => Promise<T>,
    isUnknown: (answer: T) => boolean | undefined,
  ): Promise<T> {
    assertNotLimited(network);
    // The background yields to the others by itself.
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
    // Turned off by a reload, for requests from before.
    if (network === undefined || settings().perMinute === 0) return read();
    return judge({ network, isInBackground: caller?.class === 'background' }, read, isUnknown);
  };
}
