// The audit file, the change feed and its webhook: every write and purge, for other programs and for later.
import type { Plugin } from '../../app/plugin.js';
import type { Config } from '../../config/schema.js';
import { ServiceError } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';
import { ADMIN_GROUP } from '../../http/schemas.js';
import { z } from 'zod';
import type { MetricEntry } from '../../observe/metric-list.js';

const DESTINATIONS = ['file', 'feed', 'webhook'] as const;

export type Destination = (typeof DESTINATIONS)[number];

export const METRICS = {
  queued: {
    name: 'handle_proxy_changes_queued',
    type: 'gauge',
    labelNames: ['destination'],
    help: 'Recorded writes and purges waiting for delivery, by destination (file: `audit.file`; feed: Redis); at most 10,000 each.',
  },
  dropped: {
    name: 'handle_proxy_changes_dropped_total',
    type: 'counter',
    labelNames: ['destination'],
    help: 'Recorded writes and purges that were never delivered and are replaced by a `gap`, by destination (file: `audit.file`; feed: Redis was unavailable for too long; webhook: no 2xx response before the feed dropped them).',
    fromStart: DESTINATIONS.map((destination) => ({ destination })),
  },
} as const satisfies Record<string, MetricEntry>;

interface ChangesSettings {
  /** The audit file. */
  file: string | undefined;
  hasFeed: boolean;
}

export const settingsOf = ({ audit: { file }, changes: { enabled, webhook } }: Config): ChangesSettings => ({
  file,
  hasFeed: enabled || webhook.url !== undefined,
});

/** The error of `GET /changes` without a feed. */
export const noFeed = (): ServiceError =>
  new ServiceError('UNKNOWN_ENDPOINT', { detail: 'set changes.enabled' });

export const changes: Plugin = {
  name: 'changes',
  metrics: METRICS,
  adminRoutes: defineRoutes(ADMIN_GROUP, {
    'GET /changes': {
      id: 'changes',
      isRoutine: true,
      summary: 'Stream writes and purges as server-sent events',
      description:
        'Requires `changes.enabled`. Starts after the event in `Last-Event-ID` (`0-0`: with the oldest retained change), otherwise with the next change. An event `gap` replaces lost changes.',
      responses: {
        200: {
          description: 'Events `change` and `gap`, each with an id and the change as data',
          content: { 'text/event-stream': z.string() },
        },
      },
      errors: ['UNKNOWN_ENDPOINT', 'BAD_REQUEST', 'ADMIN_BUSY'],
    },
  }),
  offError: noFeed,
  isEnabled(config) {
    const { file, hasFeed } = settingsOf(config);
    return file !== undefined || hasFeed;
  },
  load: () => import('./changes.js'),
};
