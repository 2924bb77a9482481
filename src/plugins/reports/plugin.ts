// Resolution reports: the reads of each prefix and month, for the owners of prefixes.
import { z } from 'zod';
import type { Plugin } from '../../app/plugin.js';
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

export const reports: Plugin = {
  name: 'reports',
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
