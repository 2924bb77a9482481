// Caches in front: every invalidation is confirmed by each Varnish before a write is acknowledged.
import type { Plugin } from '../../plugin.js';
import { readOrigin } from '../../config/addresses.js';
import { type SectionsOf, fixed, list, oneOf, section } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import type { MetricEntry } from '../../observe/metric-list.js';

const RESULTS = ['confirmed', 'unconfirmed'] as const;

export const METRICS = {
  bans: {
    name: 'handle_proxy_front_bans_total',
    type: 'counter',
    labelNames: ['result'],
    help: 'Bans sent to the caches of `fronts.urls`, by result; one ban may contain the invalidations of many writes, and is sent twice.',
    fromStart: RESULTS.map((result) => ({ result })),
  },
} as const satisfies Record<string, MetricEntry>;

const SECTIONS = {
  fronts: section({
    urls: list({
      allowed: 'http:// or https:// addresses without a path, such as http://varnish:6081',
      read: readOrigin,
      // Every write waits for every front, and each has a connection.
      max: 16,
    })
      .default([])
      .describe(
        'Varnish caches in front, at most 16, separated by commas. A write is acknowledged once each has banned the responses of the handle, about 150 ms later. Needs `http.sharedMaxAge` and the VCL of "Varnish in front"; give all instances the same list.',
      ),
    unconfirmedWrites: oneOf(['reject', 'accept'], 'reject').describe(
      'What happens to a write that a cache of `fronts.urls` has not confirmed within 2 seconds, or 4 if the ban before is unanswered too: `reject` answers 503 although the record has changed, `accept` acknowledges it, and that cache may serve the old record until it can be reached.',
    ),
    // Longer than the 100 ms within which Varnish stores a response, by the VCL of "Varnish in front".
    settleMs: fixed(150),
    repeatMs: fixed(5000),
    timeoutMs: fixed(2000),
    retryMs: fixed(1000),
  }),
};

export type FrontsConfig = Config & SectionsOf<typeof SECTIONS>;

export const fronts: Plugin<FrontsConfig> = {
  name: 'fronts',
  sections: SECTIONS,
  rules: ({ fronts: { urls }, http }) => [
    [
      urls.length > 0 && http.sharedMaxAgeMs === 0,
      'http.sharedMaxAge',
      'set it, for example to 1d, because fronts.urls is set and caches in front store nothing without it',
    ],
  ],
  metrics: METRICS,
  connections: ({ fronts: { urls } }) => urls.length,
  isEnabled: ({ fronts: { urls } }) => urls.length > 0,
  load: () => import('./fronts.js'),
};
