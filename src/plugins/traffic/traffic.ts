// Starts the traffic rules and the miss limit, and handles their routes on the admin listener.
import type { Host, Started } from '../../app/plugin.js';
import { ServiceError } from '../../errors.js';
import { type AdminHandler, callOf, decodeParameter } from '../../http/router.js';
import type { Ranked } from '../../observe/recent.js';
import { networkNamed } from '../../server/client-address.js';
import { type LimitedNetworks, createLimitedNetworks } from './limited-networks.js';
import { createMissLimit } from './miss-limit.js';
import { ERRORS, type TrafficConfig, type TrafficReport } from './plugin.js';
import { createTrafficPolicy } from './policy.js';
import { createRuleCounts } from './rule-counts.js';
import { createTokenBuckets } from './token-bucket.js';

export function start(host: Host<TrafficConfig>): Started {
  const { settings, cache, clock, metrics } = host;
  // A reload preserves these parts.
  const networks = createLimitedNetworks(host);
  const counts = createRuleCounts(metrics);
  const takeTokens = createTokenBuckets(clock.now, cache.commands);
  const report = (): TrafficReport => {
    const clients = metrics.recent.clients();
    return {
      rules: settings.current.traffic.rules.map(({ name }) => counts.of(name)),
      networks: clients.networks.map(missesOf),
      agents: clients.agents.map(missesOf),
      blocked: blockedOf(networks),
    };
  };
  return {
    admission: () => createTrafficPolicy(settings.current.traffic.rules, host, takeTokens, counts),
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

const missesOf = ({ name, count }: Ranked): TrafficReport['networks'][number] => ({ name, misses: count });

const blockedOf = (networks: LimitedNetworks): TrafficReport['blocked'] =>
  networks
    .list()
    .sort((one, other) => other.until - one.until)
    .map(({ network, until, reason }) => ({ network, until: new Date(until).toISOString(), reason }));

/** Maximum rows per list on the status page. */
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

/** Creates the handler that ends the limit of a network here and in Redis. */
const createUnblock =
  (networks: LimitedNetworks): AdminHandler =>
  async (_req, res) => {
    // The slash of the network may be percent-encoded.
    const network = networkNamed(decodeParameter(callOf(res).rest));
    if (network === undefined || !(await networks.lift(network))) {
      throw new ServiceError(ERRORS.ADMIN_NOT_BLOCKED, {
        detail: 'GET /traffic lists limited networks as blocked',
      });
    }
    res.status(204).end();
  };
