// Starts the traffic rules and the miss limit, and handles their routes on the admin listener.
import { boundedMap } from '../../cache/bounded-map.js';
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { ServiceError } from '../../errors.js';
import { restOf } from '../../http/route-table.js';
import { type AdminHandler, callOf, decodeParameter } from '../../http/router.js';
import type { Ranked } from '../../observe/recent.js';
import { networkNamed } from '../../http/client-address.js';
import type { AroundMiss, Miss } from '../../upstream/caller.js';
import type { OriginServer } from '../../upstream/contract.js';
import { createLimitedNetworks, type LimitedNetworks } from './limited-networks.js';
import {
  ERRORS,
  type LimitReason,
  METRICS,
  type RuleResult,
  type TrafficConfig,
  type TrafficReport,
} from './plugin.js';
import { createTrafficPolicy } from './policy.js';
import { createTokenBuckets } from './token-bucket.js';

export function start(host: Host<TrafficConfig>): Started {
  const { settings, cache, clock, metrics } = host;
  // A reload preserves these parts.
  const networks = createLimitedNetworks(host);
  const takeTokens = createTokenBuckets(clock.now, cache.commands);
  const report = (): TrafficReport => {
    const clients = metrics.recent.clients();
    return {
      rules: rulesOf(host),
      networks: clients.networks.map(missesOf),
      agents: clients.agents.map(missesOf),
      blocked: blockedOf(networks),
    };
  };
  return {
    admission: () => createTrafficPolicy(settings.current.traffic.rules, host, takeTokens),
    aroundMiss: createMissLimit(host, networks),
    status: () => ({ traffic: shortened(report()) }),
    adminHandlers: {
      traffic(_req, res) {
        res.json(report());
      },
      unblockNetwork: createUnblock(networks),
    },
  };
}

/** Returns the counts of the current rules since the start, which a reload preserves. */
function rulesOf({ settings, metrics }: Host<TrafficConfig>): TrafficReport['rules'] {
  const counts = new Map(
    metrics.read(METRICS.rules).map(({ labels, value }) => [`${labels['result']} ${labels['rule']}`, value]),
  );
  return settings.current.traffic.rules.map(({ name }) => {
    const countOf = (result: RuleResult): number => counts.get(`${result} ${name}`) ?? 0;
    return { name, matched: countOf('matched'), limited: countOf('limited'), shadowed: countOf('shadowed') };
  });
}

const missesOf = ({ name, count }: Ranked): TrafficReport['networks'][number] => ({ name, misses: count });

const blockedOf = (networks: LimitedNetworks): TrafficReport['blocked'] =>
  networks
    .limits()
    .sort((one, other) => other.until - one.until)
    .map(({ network, until, reason }) => ({ network, until: new Date(until).toISOString(), reason }));

const MAX_SHOWN = 10;

function shortened({ rules, networks, agents, blocked }: TrafficReport) {
  const shown = <T>(list: readonly T[]): T[] => list.slice(0, MAX_SHOWN);
  return {
    rules: shown(rules),
    networks: shown(networks),
    agents: shown(agents),
    blocked: shown(blocked),
    blockedCount: blocked.length,
  };
}

const createUnblock =
  (networks: LimitedNetworks): AdminHandler =>
  async (_req, res) => {
    // The slash of the network may be percent-encoded.
    const network = networkNamed(decodeParameter(restOf(callOf(res))));
    if (network === undefined || !(await networks.lift(network))) {
      throw new ServiceError(ERRORS.ADMIN_NOT_BLOCKED, {
        detail: 'GET /traffic lists limited networks as blocked',
      });
    }
    res.status(204).end();
  };

// Refuses the misses of limited networks, and counts those of others to limit them.

const WHY: Readonly<Record<LimitReason, string>> = {
  'unknown-names': 'too many reads of handles that do not exist',
  'most-misses': 'most of the reads while the Handle server is under pressure',
};

/** Creates the miss limit. It reads the settings at each miss, because a reload may change them. */
export function createMissLimit(
  { settings, metrics, upstreams, clock: { now } }: Host<TrafficConfig>,
  networks: LimitedNetworks,
): AroundMiss {
  const window = new MissWindow();
  /** Misses under pressure, by server: a network is compared with those that read from the same one. */
  const pressedAt = new Map<OriginServer, MissWindow>();
  const countLimited = metrics.counterOf(METRICS.limitedMisses);
  metrics.readGauge(METRICS.limitedNetworks, () => networks.limits().length);
  // Pressure means that the queue is at least as long as the concurrency limit for reads.
  const isUnderPressure = ({ usage }: OriginServer): boolean => {
    const { waiting, limit } = usage().read;
    return waiting >= limit;
  };
  // Misses count from zero when a limit ends, even if a different instance has set it.
  networks.onLimited = (network) => {
    for (const each of [window, ...pressedAt.values()]) each.forget(network);
  };

  function assertNotLimited(network: string): void {
    const limited = networks.find(network);
    if (limited === undefined) return;
    countLimited({ reason: limited.reason });
    const detail = `${WHY[limited.reason]} from ${network}; cached records are served`;
    throw new ServiceError(ERRORS.RATE_LIMITED, { detail, retryAfterMs: limited.until - now() });
  }

  function count(network: string, added: Partial<MissCounts>, counted = window): void {
    const at = now();
    if (networks.find(network) !== undefined) return;
    const { counts, pressedOfAll } = counted.countMisses(network, added, at);
    const { perMinute, forMs } = settings.current.traffic.enumeration;
    const reason = judgeMisses(counts, pressedOfAll, perMinute);
    if (reason !== undefined) networks.limit({ network, until: at + forMs, reason });
  }

  async function judge<T>(network: string, { handle, caller, read, isUnknown }: Miss<T>): Promise<T> {
    assertNotLimited(network);
    // Background requests already yield to all others.
    const server =
      caller?.class === 'background' ? undefined : upstreams.findServers(handle).find(isUnderPressure);
    if (server !== undefined) {
      const pressed = pressedAt.get(server) ?? new MissWindow();
      pressedAt.set(server, pressed);
      count(network, { pressed: 1 }, pressed);
      assertNotLimited(network);
    }
    const answer = await read();
    const unknown = isUnknown(answer);
    if (unknown !== undefined) count(network, { answered: 1, unknown: unknown ? 1 : 0 });
    return answer;
  }

  return function limitMiss(miss) {
    const network = miss.caller?.network;
    // A reload may have disabled limits since the request was admitted.
    if (network === undefined || settings.current.traffic.enumeration.perMinute === 0) return miss.read();
    return judge(network, miss);
  };
}

/** The misses of a network in the current minute. */
interface MissCounts {
  answered: number;
  unknown: number;
  /** Misses that arrived while the upstream was under pressure. */
  pressed: number;
}

/** Clients of real records miss a few names; a network that guesses misses nearly all. */
const NOT_FOUND_RATIO = 0.9;

/** Limits a network that enumerates, or causes most misses under pressure, unless it is alone. */
export function judgeMisses(
  { answered, unknown, pressed }: MissCounts,
  pressedOfAll: number,
  perMinute: number,
): LimitReason | undefined {
  if (answered > perMinute && unknown >= NOT_FOUND_RATIO * answered) return 'unknown-names';
  const isAlone = pressed === pressedOfAll;
  return pressed > perMinute && !isAlone && pressed > pressedOfAll / 2 ? 'most-misses' : undefined;
}

const WINDOW_MS = 60_000;
/** Maximum networks; above it, the counts of the longest quiet networks are dropped. */
const MAX_NETWORKS = 20_000;

/** Miss counts in consecutive windows of one minute, which start at the same time for all networks. */
export class MissWindow {
  #startedAt = -Infinity;
  #pressedOfAll = 0;
  readonly #byNetwork = boundedMap<MissCounts>(MAX_NETWORKS);

  /** Returns the counts of the network, and the misses of all networks under pressure. */
  countMisses(
    network: string,
    { answered = 0, unknown = 0, pressed = 0 }: Partial<MissCounts>,
    now: number,
  ): { counts: MissCounts; pressedOfAll: number } {
    if (now - this.#startedAt >= WINDOW_MS) this.#restart(now);
    const counts = this.#byNetwork.get(network) ?? { answered: 0, unknown: 0, pressed: 0 };
    counts.answered += answered;
    counts.unknown += unknown;
    counts.pressed += pressed;
    this.#pressedOfAll += pressed;
    this.#byNetwork.set(network, counts);
    return { counts, pressedOfAll: this.#pressedOfAll };
  }

  forget(network: string): void {
    this.#byNetwork.delete(network);
  }

  #restart(now: number): void {
    this.#startedAt = now;
    this.#pressedOfAll = 0;
    this.#byNetwork.clear();
  }
}
