// Traffic: rules for requests, and limits for networks that enumerate handles.
import { z } from 'zod';
import type { Plugin } from '../../plugin.js';
import { readHandlePattern, readNetwork } from '../../config/addresses.js';
import {
  type Rule,
  type SectionsOf,
  fixed,
  flag,
  items,
  mapping,
  mappingError,
  mappings,
  oneOf,
  reloadable,
  section,
  text,
  wholeNumber,
  word,
} from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { defineErrors } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';
import type { MetricEntry } from '../../observe/metric-list.js';
import { CLASSES } from '../../upstream/caller.js';

export const ERRORS = defineErrors({
  TRAFFIC_REFUSED: {
    status: 403,
    responseCode: 400,
    title: 'Refused by a traffic rule',
    rejectsClient: true,
  },
  ADMIN_NOT_BLOCKED: { status: 404, responseCode: 100, title: 'This network is not limited' },
  RATE_LIMITED: { status: 429, responseCode: 3, title: 'Too many requests', rejectsClient: true },
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

const INTERFACES = ['record', 'v2', 'redirect', 'list', 'native'] as const;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS'] as const;
/** Token bucket keys: requests with the same key share a bucket. */
const LIMIT_KEYS = ['address', 'network', 'rule'] as const;

const wordsOf = <const T extends readonly string[]>(words: T) =>
  items({
    allowed: words.join(', '),
    read: (item): T[number] | undefined => words.find((word) => word === item),
  }).optional();

/** Parses an address or CIDR network. Unlike `http.trustedProxies`, it rejects named networks. */
const readCidr = (item: string): string | undefined =>
  /^[\d.:a-f/]+$/i.test(item) ? readNetwork(item) : undefined;

const pattern = (item: string): string | undefined => (item === '' ? undefined : item);

const match = section({
  network: items({ allowed: 'IP addresses and networks such as 192.0.2.0/24', read: readCidr }).optional(),
  userAgent: items({ allowed: 'texts with * for any part, such as *GPTBot*', read: pattern }).optional(),
  method: wordsOf(METHODS),
  interface: wordsOf(INTERFACES),
  prefix: items({
    allowed: 'prefixes such as "21.T11998", or "21.T11998.*" for those derived from it, in quotes',
    read: (item) => (/^[^\s/*]+(?:\.\*)?$/.test(item) ? item : undefined),
  }).optional(),
  handle: items({
    allowed: 'handles with a slash, and * for any part, such as 21.T11998/*',
    read: readHandlePattern,
  }).optional(),
  reads: word(['hits', 'misses']).optional(),
  credentials: flag(false).unwrap().optional(),
});

const requests = wholeNumber({ min: 1, max: 100_000_000, byDefault: 1 }).unwrap().optional();

const LIMIT_MEMBERS = {
  perSecond: requests,
  perMinute: requests,
  burst: requests,
  by: oneOf(LIMIT_KEYS, 'address'),
};

const limit = z
  .strictObject(LIMIT_MEMBERS, {
    error: mappingError(Object.keys(LIMIT_MEMBERS), 'give a mapping such as { perMinute: 600 }'),
  })
  .refine(({ perSecond, perMinute }) => (perSecond === undefined) !== (perMinute === undefined), {
    error: 'give either perSecond or perMinute',
  });

const rule = mapping({
  name: text({ allowed: 'a name of 1 to 64 printable ASCII characters', pattern: /^[\x20-\x7e]{1,64}$/ }),
  match,
  class: word(CLASSES).optional(),
  limit: limit.optional(),
  answer: z
    .preprocess(Number, z.union([z.literal(429), z.literal(403)], { error: 'give 429 or 403' }))
    .optional(),
  log: flag(false),
  shadow: flag(false),
  robot: flag(false),
});

const enumeration = section({
  perMinute: wholeNumber({ min: 0, max: 100_000_000, byDefault: 0 }).describe(
    'Maximum misses per minute of one network (IPv4 /24, IPv6 /56), if most are for missing handles, or if the network causes most misses of handles whose server is under pressure; above it, the network\'s misses get 429. `0` limits no network. See "Networks that enumerate handles".',
  ),
  // A limited network is measured again after this time (ms).
  forMs: fixed(10 * 60_000),
});

export type TrafficRule = z.output<typeof rule>;
export type InterfaceName = (typeof INTERFACES)[number];

const hasUniqueNames = (rules: readonly TrafficRule[]): boolean =>
  new Set(rules.map(({ name }) => name)).size === rules.length;

/** The first match decides: a rule that matches every request must be the last. */
function reachRule(rules: readonly TrafficRule[]): Rule {
  const isForAll = ({ match: conditions, shadow }: TrafficRule): boolean =>
    !shadow && Object.values(conditions).every((condition) => condition === undefined);
  const at = rules.findIndex(isForAll);
  const name = rules[at]?.name ?? '';
  const message = `rule "${name}" has no match, so that no rule behind it applies: make it the last`;
  return [at !== -1 && at < rules.length - 1, 'traffic.rules', message];
}

const trafficSection = reloadable(
  section({
    rules: mappings(rule)
      .refine(hasUniqueNames, { error: 'give each rule a unique name' })
      .describe(
        'Rules for requests; the first match decides. Each has a `name`, conditions (`match`: `network`, `userAgent`, `method`, `interface`, `prefix`, `handle`, `reads`, `credentials`) and actions (`class`, `limit`, `answer`, `log`, `shadow`, `robot`). See "Traffic rules".',
      ),
    enumeration,
  }),
);

const SECTIONS = { traffic: trafficSection };

export type TrafficConfig = Config & SectionsOf<typeof SECTIONS>;

export const traffic: Plugin<TrafficConfig> = {
  name: 'traffic',
  sections: SECTIONS,
  rules: ({ traffic: { rules } }) => [reachRule(rules)],
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
