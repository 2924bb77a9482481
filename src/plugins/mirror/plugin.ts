// A mirror of prefixes: all their handles are in the cache, and survive an outage of any length.
import type { Plugin } from '../../app/plugin.js';
import type { MetricEntry } from '../../observe/metric-list.js';

export const METRICS = {
  handles: {
    name: 'handle_proxy_mirror_handles',
    type: 'gauge',
    labelNames: ['prefix', 'state'],
    help: 'Handles of a mirrored prefix by state (listed; since the last list checked: read if the record was too old; absent: without an entry in memory when they were checked, as all are in the first copy, later a sign that `cache.maxBytes` is too small; failed: not read in three attempts).',
  },
  age: {
    name: 'handle_proxy_mirror_age_seconds',
    type: 'gauge',
    labelNames: ['prefix', 'part'],
    help: 'Age of a mirrored prefix by part (list: time since the last list; records: time since the last whole list of which every handle has been checked and none has failed), `+Inf` before the first.',
  },
} as const satisfies Record<string, MetricEntry>;

export const mirror: Plugin = {
  name: 'mirror',
  metrics: METRICS,
  statistics: { mirrors: [] },
  isEnabled: ({ mirror: { prefixes } }) => prefixes.length > 0,
  load: () => import('./mirror.js'),
};
