// The change file, the change feed and its webhook: every write and purge, for other programs and for later.
import type { Plugin } from '../../plugin.js';
import { readWebUrl } from '../../config/addresses.js';
import {
  type SectionsOf,
  absoluteFilePath,
  fixed,
  flag,
  normalised,
  secret,
  section,
  text,
} from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { folderProblem } from '../../config/start-problems.js';
import { ServiceError } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';
import type { MetricEntry } from '../../observe/metric-list.js';

const DESTINATIONS = ['file', 'feed', 'webhook'] as const;

export type Destination = (typeof DESTINATIONS)[number];

export const METRICS = {
  queued: {
    name: 'handle_proxy_changes_queued',
    type: 'gauge',
    labelNames: ['destination'],
    help: 'Recorded writes and purges waiting for delivery, by destination (file: `changes.file`; feed: Redis); at most 10,000 each.',
  },
  dropped: {
    name: 'handle_proxy_changes_dropped_total',
    type: 'counter',
    labelNames: ['destination'],
    help: 'Recorded writes and purges that were never delivered and are replaced by a `gap`, by destination (file: `changes.file`; feed: Redis was unavailable for too long; webhook: no 2xx response before the feed dropped them).',
    fromStart: DESTINATIONS.map((destination) => ({ destination })),
  },
} as const satisfies Record<string, MetricEntry>;

const SECTIONS = {
  changes: {
    file: absoluteFilePath.describe(
      'Change file, to which one JSON line is appended for each write and purge, without values and credentials. Its folder must exist and be writable; the file may be renamed at any time (log rotation). By default no change file is written.',
    ),
    enabled: flag(false).describe(
      'Whether the admin listener serves the change feed at `GET /changes`, which contains the changes of all instances that share a Redis. `changes.webhook.url` also enables the feed. It retains the last 100,000 changes; a reader that is further behind gets a `gap`.',
    ),
    // Changes retained for readers and for the webhook, about 400 bytes each: 40 MB in Redis or in memory.
    maxEntries: fixed(100_000),
    // Names and invented logins make lines of up to 12,000 characters, which anyone may cause during an outage.
    maxChars: fixed(64 * 1024 * 1024),
    webhook: section({
      url: normalised({
        allowed: 'the whole http:// or https:// address, such as https://example.org/changes',
        read: (given) => readWebUrl(given) && given,
      })
        .optional()
        .describe(
          'URL to which changes are posted in signed batches (Standard Webhooks). By default no changes are posted.',
        ),
      secret: secret(
        text({
          allowed: 'Base64 of 24 to 64 bytes, also after whsec_',
          pattern: /^(?:whsec_)?[A-Za-z0-9+/]{32,88}={0,2}$/,
        })
          .optional()
          .describe(
            'Signing key (HMAC-SHA256) in Base64, for example from `openssl rand -base64 32`; required with `changes.webhook.url`.',
          ),
      ),
    }),
  },
};

export type ChangesConfig = Config & SectionsOf<typeof SECTIONS>;

export const hasFeed = ({ changes: { enabled, webhook } }: ChangesConfig): boolean =>
  enabled || webhook.url !== undefined;

export const changes: Plugin<ChangesConfig> = {
  name: 'changes',
  sections: SECTIONS,
  rules: ({ changes: { webhook } }) => [
    [
      webhook.url !== undefined && webhook.secret === undefined,
      'changes.webhook.secret',
      'set it, because changes.webhook.url is set',
    ],
  ],
  startProblems: ({ changes: { file } }) => [
    ['changes.file', folderProblem(file, 'the change file cannot be written,')],
  ],
  metrics: METRICS,
  adminRoutes: defineRoutes({}, { 'GET /changes': { id: 'changes', isRoutine: true } }),
  offError: () => new ServiceError('UNKNOWN_ENDPOINT', { detail: 'set changes.enabled' }),
  isEnabled: (config) => config.changes.file !== undefined || hasFeed(config),
  load: () => import('./changes.js'),
};
