// OpenAPI schemas for all interfaces: errors, parameters, JSON.
import { z } from 'zod';
import { CATALOGUE } from '../errors.js';
import type { Content, Security } from './route-table.js';

export const errorCode = z.enum(Object.keys(CATALOGUE)).meta({ id: 'ErrorCode' });

const problem = z
  .object({
    type: z.literal('about:blank').optional(),
    title: z.string(),
    status: z.int(),
    detail: z.string().optional(),
    code: errorCode,
    responseCode: z
      .int()
      .describe(
        'Response code of the Handle System. In a 404 for a handle: 100 for a handle that does not exist, 4 for an unknown path, 301 for a prefix that is not served here.',
      ),
    handle: z.string().optional(),
  })
  .meta({ id: 'Problem' });

/** Problem JSON (RFC 9457). */
export const PROBLEM: Content = { 'application/problem+json': problem };

export const anyObject = z.looseObject({});

export const optionalText = (description: string) => z.string().optional().describe(description);

export const pathText = (description: string, example: string) => z.string().meta({ description, example });

export const json = (description: string, schema: z.ZodType) => ({
  description,
  content: { 'application/json': schema },
});

/** The group of all routes of the admin listener. */
export const ADMIN_GROUP = {
  tag: { name: 'Admin', description: 'Monitoring and administration by the operator.' },
  errors: ['ADMIN_TOKEN_NEEDED', 'ADMIN_CROSS_ORIGIN', 'METHOD_NOT_ALLOWED'],
  errorContent: PROBLEM,
  security: ['none', 'adminToken'] satisfies Security[],
} as const;
