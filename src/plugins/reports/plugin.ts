// Resolution reports: the reads of each prefix and month, for the owners of prefixes.
import { join } from 'node:path';
import { z } from 'zod';
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, fixed, flag, text } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { folderProblem } from '../../config/start-problems.js';
import { ServiceError, defineErrors } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';

export const ERRORS = defineErrors({
  REPORTS_DISABLED: { status: 404, responseCode: 100, title: 'Resolution reports are disabled' },
  REPORT_UNAVAILABLE: { status: 503, responseCode: 2, title: 'The reports are unavailable' },
});

export const reportQuery = z.object({
  prefix: z.string().regex(/^[^/]+$/),
  month: z
    .string()
    .regex(/^\d{4}-(?:0[1-9]|1[0-2])$/)
    .optional(),
});

interface TopHandles {
  /** Whether every handle is listed with its exact count. */
  exact: boolean;
  /** Maximum difference between a count and the exact count. */
  maxError: number;
  handles: { handle: string; count: number }[];
}

/** Counts of anonymous reads; those of `topHandles` and `topUnknown` in descending order. */
export interface ResolutionReport {
  prefix: string;
  month: string;
  /** Answered reads, including those of handles that do not exist. */
  resolutions: number;
  unknown: number;
  /** Reads that matched a traffic rule with `robot: true`, including failed reads. */
  robots: number;
  byInterface: Record<string, number>;
  topHandles: TopHandles;
  topUnknown: TopHandles;
}

const SECTIONS = {
  reports: {
    enabled: flag(false).describe(
      'Whether resolutions are counted by prefix and month, with the most frequent handles and unknown handles. It stores which handles are requested, but no client address and no login. See "Resolution reports".',
    ),
    folder: text({ allowed: 'the absolute path of a folder', pattern: /^\/[^\0\n]*$/ })
      .optional()
      .describe(
        'Folder with the reports of an instance without Redis, a file for each month; it must exist and be writable, and no other instance may use it. With `redis.url` the reports are in Redis; without either they end with the process.',
      ),
    // Prefixes with a separate report, of up to 0.5 MB each; the others are counted together as `other`.
    maxPrefixes: fixed(200),
  },
};

export type ReportsConfig = Config & SectionsOf<typeof SECTIONS>;

export const reports: Plugin<ReportsConfig> = {
  name: 'reports',
  sections: SECTIONS,
  startProblems: ({ reports: { enabled, folder } }) => [
    [
      'reports.folder',
      enabled && folder !== undefined
        ? folderProblem(join(folder, 'reports'), 'the reports cannot be written,')
        : undefined,
    ],
  ],
  errors: ERRORS,
  adminRoutes: defineRoutes({}, { 'GET /reports': 'report' }),
  offError: () => new ServiceError(ERRORS.REPORTS_DISABLED, { detail: 'set reports.enabled' }),
  isEnabled: ({ reports: { enabled } }) => enabled,
  load: () => import('./reports.js'),
};
