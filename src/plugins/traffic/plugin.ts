// Traffic: rules for requests, and limits for networks that enumerate handles.
import type { Plugin } from '../../app/plugin.js';
import type { Config } from '../../config/schema.js';
import type { SectionsOf } from '../../config/sections.js';
import { defineErrors } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';
import type { MetricEntry } from '../../observe/metric-list.js';
import { traffic as section } from './schema.js';

export const ERRORS = defineErrors({
  TRAFFIC_REFUSED: { status: 403, responseCode: 400, title: 'Refused by a traffic rule' },
  ADMIN_NOT_BLOCKED: { status: 404, responseCode: 100, title: 'This network is not limited' },
  RATE_LIMITED: { status: 429, responseCode: 3, title: 'Too many requests' },
});

export const RULE_RESULTS = ['matched', 'limited', 'shadowed'] as const;
export type RuleResult = (typeof RULE_RESULTS)[number];

export const LIMIT_REASONS = ['unknown-names', 'most-misses'] as const;
export type LimitReason = (typeof LIMIT_REASONS)[number];

export const METRICS = {
  rules: {
    name: 'handle_proxy_traffic_rule_requests_total',
    type: 'counter',
    labelNames: ['rule', 'result'],
    help: 'Requests that matched a rule in `traffic.rules`, by rule and result (matched: passed; limited: rejected; shadowed: only counted, would have been rejected).',
  },
  limitedNetworks: {
    name: 'handle_proxy_limited_networks',
    type: 'gauge',
    labelNames: [],
    help: 'Networks currently limited by `traffic.enumeration`.',
  },
  limitedMisses: {
    name: 'handle_proxy_limited_misses_total',
    type: 'counter',
    labelNames: ['reason'],
    help: 'Misses of limited networks, rejected with 429, by reason (unknown-names: the network requested missing handles; most-misses: it caused most misses while reads were queued for the Handle server).',
    fromStart: LIMIT_REASONS.map((reason) => ({ reason })),
  },
} as const satisfies Record<string, MetricEntry>;

/** Requests in the last five to ten minutes that reached the Handle server, or would have if not rejected. */
interface MissesOfClient {
  name: string;
  misses: number;
}

export interface TrafficReport {
  rules: ({ name: string } & Record<RuleResult, number>)[];
  networks: MissesOfClient[];
  agents: MissesOfClient[];
  /** Limited networks with the end of their limit (ISO 8601), latest first. */
  blocked: { network: string; until: string; reason: LimitReason }[];
}

const SECTIONS = { traffic: section };

export type TrafficConfig = Config & SectionsOf<typeof SECTIONS>;

export const traffic: Plugin<TrafficConfig> = {
  name: 'traffic',
  sections: SECTIONS,
  errors: ERRORS,
  metrics: METRICS,
  adminRoutes: defineRoutes(
    {},
    { 'GET /traffic': 'traffic', 'DELETE /traffic/blocked/{network}': 'unblockNetwork' },
  ),
  // A reload can add rules, and the lists of clients with the most misses need no key.
  isEnabled: () => true,
  load: () => import('./traffic.js'),
};
