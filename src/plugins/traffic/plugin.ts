// Traffic: rules for requests, and limits for networks that enumerate handles.
import { z } from 'zod';
import type { Plugin } from '../../app/plugin.js';
import type { Config } from '../../config/schema.js';
import type { SectionsOf } from '../../config/sections.js';
import { defineRoutes } from '../../http/route-table.js';
import { ADMIN_GROUP, json, pathText } from '../../http/schemas.js';
import type { MetricEntry } from '../../observe/metric-list.js';
import { traffic as section } from './schema.js';

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
const clients = z.array(z.object({ name: z.string(), misses: z.int() }));

const trafficReport = z.object({
  rules: z.array(z.object({ name: z.string(), matched: z.int(), limited: z.int(), shadowed: z.int() })),
  networks: clients,
  agents: clients,
  /** Sorted by `until`, latest first. */
  blocked: z.array(
    z.object({
      network: z.string(),
      until: z.string().meta({ format: 'date-time' }),
      reason: z.enum(LIMIT_REASONS),
    }),
  ),
});

export type TrafficReport = z.output<typeof trafficReport>;

const SECTIONS = { traffic: section };

export type TrafficConfig = Config & SectionsOf<typeof SECTIONS>;

export const traffic: Plugin<TrafficConfig> = {
  name: 'traffic',
  sections: SECTIONS,
  metrics: METRICS,
  adminRoutes: defineRoutes(
    {
      ...ADMIN_GROUP,
      parameters: z.object({
        network: pathText('The network as listed by `GET /traffic`, or an address in it.', '192.0.2.0/24'),
      }),
    },
    {
      'GET /traffic': {
        id: 'traffic',
        summary: 'Read the traffic rules, the clients with the most misses, and the limited networks',
        responses: {
          200: json(
            'Counts of each rule since the start, clients with the most misses in the last five to ten minutes, and limited networks',
            trafficReport,
          ),
        },
      },
      'DELETE /traffic/blocked/{network}': {
        id: 'unblockNetwork',
        summary: 'End the limit of a network on all instances',
        responses: { 204: 'The limit has ended; other instances follow within two seconds' },
        errors: ['ADMIN_NOT_BLOCKED', 'INVALIDATION_UNCONFIRMED'],
      },
    },
  ),
  // A reload can add rules, and the lists of clients with the most misses need no key.
  isEnabled: () => true,
  load: () => import('./traffic.js'),
};
