// `GET /traffic`: rules, networks, agents and limited networks of all processes as one.
import type { LimitedNetwork } from '../coordination/limited-networks.js';
import {
  type ClientCounts,
  type RuleCounts,
  type TrafficReport,
  mergeClients,
} from '../observe/traffic-activity.js';

/** Of one process. */
export interface ProcessTraffic extends TrafficReport {
  limited: LimitedNetwork[];
}

export interface Traffic {
  rules: RuleCounts[];
  networks: ClientCounts[];
  agents: ClientCounts[];
  /** The one that ends last comes first. */
  blocked: { network: string; until: string; reason: string }[];
}

const MAX_CLIENTS = 20;

export function trafficOf(reports: readonly ProcessTraffic[]): Traffic {
  return {
    rules: mergeRules(reports.flatMap(({ rules }) => rules)),
    networks: mergeClients(
      reports.map(({ networks }) => networks),
      MAX_CLIENTS,
    ),
    agents: mergeClients(
      reports.map(({ agents }) => agents),
      MAX_CLIENTS,
    ),
    blocked: mergeLimited(reports.flatMap(({ limited }) => limited)),
  };
}

function mergeRules(all: readonly RuleCounts[]): RuleCounts[] {
  const sums = new Map<string, RuleCounts>();
  for (const { name, matched, limited, shadowed } of all) {
    const known = sums.get(name) ?? { name, matched: 0, limited: 0, shadowed: 0 };
    sums.set(name, {
      name,
      matched: known.matched + matched,
      limited: known.limited + limited,
      shadowed: known.shadowed + shadowed,
    });
  }
  return [...sums.values()];
}

/** Every process knows of all. */
function mergeLimited(all: readonly LimitedNetwork[]): Traffic['blocked'] {
  const latest = [...all].sort((one, other) => one.until - other.until);
  return [...new Map(latest.map((limited) => [limited.network, limited])).values()]
    .sort((one, other) => other.until - one.until)
    .map(({ network, until, reason }) => ({ network, until: new Date(until).toISOString(), reason }));
}
