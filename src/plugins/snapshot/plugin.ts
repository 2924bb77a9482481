// The snapshot and the seed, put into memory at startup; and calls that export and import records.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, absoluteFilePath, filePath, fixed, section } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { accessProblem, replacedFileProblem } from '../../config/start-problems.js';
import { defineRoutes } from '../../http/route-table.js';
import type { MetricEntry } from '../../observe/metric-list.js';

/** Timeout for the last snapshot, which is written after the last response. */
export const LAST_SNAPSHOT_MS = 15_000;

export const METRICS = {
  written: {
    name: 'handle_proxy_snapshot_written_timestamp_seconds',
    type: 'gauge',
    help: 'Time of the last snapshot (seconds since 1970); 0 before the first.',
  },
  failing: {
    name: 'handle_proxy_snapshot_failing',
    type: 'gauge',
    help: '1 while the last snapshot, or its log of deletions, could not be written, else 0.',
  },
  restored: {
    name: 'handle_proxy_restored_records_total',
    type: 'counter',
    labelNames: ['source'],
    help: 'Records loaded into memory without an upstream read, by source (snapshot, seed, import).',
    fromStart: [{ source: 'snapshot' }, { source: 'seed' }, { source: 'import' }],
  },
} as const satisfies Record<string, MetricEntry>;

const SECTIONS = {
  cache: {
    snapshot: section({
      file: absoluteFilePath.describe(
        'Snapshot file, with which the records in memory survive a restart, written every 5 minutes and on SIGTERM; the folder must exist and be writable, and no other instance may use the file. Without it nothing is written to disk.',
      ),
      // An instance that is killed loses at most this time (ms); a final snapshot is written on SIGTERM.
      everyMs: fixed(5 * 60_000),
    }),
  },
  seed: {
    file: filePath.describe(
      'Export file (`handle-resolver-proxy export`) to load at startup. Its records are served stale while the upstream fails; those that no server has (`upstream.url: none`, `kind: none`) are fresh.',
    ),
  },
};

export type SnapshotConfig = Config & SectionsOf<typeof SECTIONS>;

export interface RestoredLines {
  restored: number;
  /** Skipped, because memory already has the record or the handle has changed. */
  kept: number;
  /** Skipped, because the record is too old even to be served as stale. */
  expired: number;
  full: number;
  rejected: number;
}

export const snapshot: Plugin<SnapshotConfig> = {
  name: 'snapshot',
  sections: SECTIONS,
  startProblems: ({ cache, seed }) => [
    ['seed.file', accessProblem(seed.file, 'give a file of handle-resolver-proxy export')],
    ['cache.snapshot.file', replacedFileProblem(cache.snapshot.file, 'the snapshot cannot be written,')],
  ],
  metrics: METRICS,
  adminRoutes: defineRoutes({}, { 'GET /export': 'exportRecords', 'POST /import': 'importRecords' }),
  // Always, because exports and imports need no key.
  isEnabled: () => true,
  shutdownMs: ({ cache }) => (cache.snapshot.file === undefined ? 0 : LAST_SNAPSHOT_MS),
  load: () => import('./restoring.js'),
};
