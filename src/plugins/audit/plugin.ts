// The staleness audit: compares a sample of hits, and of entries after writes, with the Handle server.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, fixed, share } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import type { MetricEntry } from '../../observe/metric-list.js';

const SAMPLES = ['hit', 'write'] as const;
const RESULTS = [
  'equal',
  'older-within-ttl',
  'older-after-acknowledged-write',
  'inconclusive',
  'skipped',
] as const;

export type Sample = (typeof SAMPLES)[number];
export type SampleResult = (typeof RESULTS)[number];

export const METRICS = {
  audits: {
    name: 'handle_proxy_audit_total',
    type: 'counter',
    labelNames: ['sample', 'result'],
    help: 'Cache entries compared with the Handle server, by sample (hit, write) and result (equal; older-within-ttl: changed by a write that bypassed the proxy; older-after-acknowledged-write: must not happen; inconclusive: a write was in flight, or the server did not respond; skipped: above 10 a second).',
    fromStart: SAMPLES.flatMap((sample) => RESULTS.map((result) => ({ sample, result }))),
  },
  staleAge: {
    name: 'handle_proxy_audit_stale_age_seconds',
    type: 'histogram',
    help: 'Age of audited entries with the result older-within-ttl, which is an upper bound for the time since the record changed at the Handle server.',
    // Up to a day, the default TTL of a handle value.
    buckets: [1, 10, 60, 300, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400],
  },
} as const satisfies Record<string, MetricEntry>;

const probability = share({ min: 0, max: 1, byDefault: 0 });

const SECTIONS = {
  audit: {
    hits: probability.describe(
      'Fraction of hits, such as `0.001`, whose entry is compared with the record at the Handle server afterwards; `0` disables this audit.',
    ),
    writes: probability.describe(
      'Fraction of acknowledged writes after which each instance compares its entry, if any, with the record at the Handle server; `0` disables this audit.',
    ),
    // Audits per second and instance, each of one or two reads in the class `background`.
    readsPerSecond: fixed(10),
  },
};

export type AuditConfig = Config & SectionsOf<typeof SECTIONS>;

export const audit: Plugin<AuditConfig> = {
  name: 'audit',
  sections: SECTIONS,
  metrics: METRICS,
  statistics: { audit: { compared: 0, equal: 0 } },
  isEnabled: ({ audit: { hits, writes } }) => hits > 0 || writes > 0,
  load: () => import('./audit.js'),
};
