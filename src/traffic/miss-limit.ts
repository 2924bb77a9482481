// Refuses the misses of limited networks, and counts those of the others until one of them has to be limited.
import type { LimitReason, LimitedNetworks } from '../coordination/limited-networks.js';
import { ServiceError } from '../errors.js';
import type { LimitMiss } from '../upstream/caller.js';
import { type MissCounts, type MissLimits, MissWindow, judgeMisses } from './miss-window.js';

interface MissLimitDeps {
  /** The keys under `traffic.unknown` as they are now. */
  settings: () => MissLimits & { forMs: number };
  networks: Pick<LimitedNetworks, 'find' | 'limit' | 'subscribe'>;
  /** Whether reads wait for the upstream. */
  isUnderPressure: () => boolean;
  onRefused: (reason: LimitReason) => void;
  now: () => number;
}

const WHY: Readonly<Record<LimitReason, string>> = {
  'unknown-names': 'too many reads of handles that do not exist',
  'most-misses': 'most of the reads while the Handle server is under pressure',
};

export function createMissLimit(deps: MissLimitDeps): LimitMiss {
  const { settings, networks, isUnderPressure, onRefused, now } = deps;
  const window = new MissWindow();
  // When its limit ends, a network begins anew, also where another instance has limited it.
  networks.subscribe((network) => {
    window.forget(network);
  });

  function assertNotLimited(network: string): void {
    const limited = networks.find(network);
    if (limited === undefined) return;
    onRefused(limited.reason);
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
