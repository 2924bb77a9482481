// Resolution reports: the reads of each prefix and month, for the owners of prefixes.
import { z } from 'zod';
import type { Plugin } from '../../app/plugin.js';
import { flag, text, wholeNumber } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import type { SectionsOf } from '../../config/sections.js';
import { ServiceError } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';
import { ADMIN_GROUP, json } from '../../http/schemas.js';

export const reportQuery = z.object({
  prefix: z
    .string()
    .regex(/^[^/]+$/)
    .meta({
      description: 'The prefix, without a slash; `other` for all prefixes without a separate report.',
      example: '21.T11998',
    }),
  month: z
    .string()
    .regex(/^\d{4}-(?:0[1-9]|1[0-2])$/)
    .optional()
    .meta({ description: 'The month in UTC, as `YYYY-MM`. Default: the current month.', example: '2026-11' }),
});

const topHandles = z.object({
  exact: z.boolean().describe('Whether every handle is listed with its exact count.'),
  maxError: z.int().describe('Maximum difference between a count and the exact count.'),
  handles: z.array(z.object({ handle: z.string(), count: z.int() })),
});

/** Counts of anonymous reads; those of `topHandles` and `topUnknown` in descending order. */
export const resolutionReport = z
  .object({
    prefix: z.string(),
    month: z.string(),
    resolutions: z.int().describe('Number of answered reads, including those of handles that do not exist.'),
    unknown: z.int().describe('Number of answered reads of handles that do not exist.'),
    robots: z
      .int()
      .describe('Number of reads that matched a traffic rule with `robot: true`, including failed reads.'),
    byInterface: z.record(z.string(), z.int()),
    topHandles,
    topUnknown: topHandles,
  })
  .meta({ id: 'ResolutionReport' });

export type ResolutionReport = z.output<typeof resolutionReport>;

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
    maxPrefixes: wholeNumber({ min: 1, max: 100_000, byDefault: 200 }).describe(
      'Maximum prefixes with a separate report; the others are counted together as `other`. A prefix needs up to 0.5 MB.',
    ),
  },
};

export type ReportsConfig = Config & SectionsOf<typeof SECTIONS>;

export const reports: Plugin<ReportsConfig> = {
  name: 'reports',
  sections: SECTIONS,
  adminRoutes: defineRoutes(ADMIN_GROUP, {
    'GET /reports': {
      id: 'report',
      summary: 'Read the resolution report of a prefix for a month',
      query: reportQuery,
      responses: {
        200: json('The sum over all instances, up to a minute old for other instances', resolutionReport),
      },
      errors: ['BAD_PARAMETER', 'REPORTS_DISABLED', 'REPORT_UNAVAILABLE'],
    },
  }),
  offError: () => new ServiceError('REPORTS_DISABLED', { detail: 'set reports.enabled' }),
  isEnabled: ({ reports: { enabled } }) => enabled,
  load: () => import('./reports.js'),
};
