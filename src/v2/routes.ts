// Routes of ePIC v2.
import { z } from 'zod';
import { PROBLEM, anyObject, json, optionalText, pathText } from '../http/schemas.js';
import { defineRoutes } from '../http/route-table.js';
import { MAX_ITEMS } from './translation/attributes.js';
import { bodyValue } from './translation/schema.js';

const v2Value = z
  .strictObject({
    idx: z.int(),
    type: z.string(),
    parsed_data: z
      .union([z.string(), anyObject, z.array(z.unknown()), z.null()])
      .describe(
        'Content of the value: a string; an object for HS_ADMIN; an array for HS_VLIST; `null` if it has none of these forms.',
      ),
    data: z
      .string()
      .meta({ description: 'Content of the value as bytes, in base64.', contentEncoding: 'base64' }),
    timestamp: z.string().optional(),
    ttl_type: z.literal([0, 1]).describe('0: `ttl` is in seconds. 1: `ttl` is an absolute time.'),
    ttl: z.union([z.int(), z.string()]),
    refs: z.array(z.string().meta({ examples: ['1:21.T11998/abc'] })),
    privs: z.string().regex(/^[r-][w-][r-][w-]$/),
  })
  .meta({ id: 'V2Value' });

const minted = z.strictObject({ 'epic-pid': z.string() }).meta({ id: 'V2Minted' });

const conditions = z.object({
  'If-Match': optionalText('Write only if the record has this ETag. `*`: only if it exists.'),
  'If-None-Match': optionalText('`*`: write only if the handle does not exist.'),
  'If-Unmodified-Since': optionalText('412 unless `If-Match` is given: records have no modification date.'),
});

const headers = { ETag: 'Strong ETag of the values that the caller can read.' };

const body = {
  description: 'All values of the record',
  content: { 'application/json': z.array(bodyValue).min(1).max(MAX_ITEMS) },
  example: [{ type: 'URL', parsed_data: 'https://example.org/' }],
};
const BODY_ERRORS = [
  'V2_BAD_BODY',
  'V2_INDEX_TAKEN',
  'V2_REJECTED',
  'V2_LOCKOUT',
  'BODY_TOO_LARGE',
  'V2_NOT_JSON',
] as const;

const created = {
  ...json('The handle was created', minted),
  headers: { ...headers, Location: 'URL of the handle.' },
};

const names = {
  'text/plain': z.string(),
  'application/json': z.union([z.array(z.unknown()), anyObject]),
};

export const v2Routes = defineRoutes(
  {
    interface: 'v2',
    tag: { name: 'ePIC v2', description: 'The same handles through version 2 of the ePIC API.' },
    handler: 'v2',
    parameters: z.object({
      prefix: pathText('The prefix.', '21.T11998'),
      suffix: pathText('The suffix. It may contain slashes, encoded as `%2F` or not.', 'page'),
    }),
    errors: [
      'BAD_PARAMETER',
      'V2_LOGIN_NEEDED',
      'V2_FORBIDDEN',
      'V2_NOT_FOUND',
      'METHOD_NOT_ALLOWED',
      'PRECONDITION_FAILED',
      'TRAFFIC_REFUSED',
      'RATE_LIMITED',
      'INTERNAL',
      'V2_NOT_SUPPORTED',
      'UPSTREAM_UNREACHABLE',
      'UPSTREAM_CONNECT_FAILED',
      'UPSTREAM_INVALID_RESPONSE',
      'UPSTREAM_FAILED',
      'UPSTREAM_BACKOFF',
      'UPSTREAM_BUSY',
      'CONCURRENT_MODIFICATION',
      'LOCK_UNAVAILABLE',
      'INVALIDATION_UNCONFIRMED',
      'OVERLOADED',
      'UPSTREAM_TIMEOUT',
    ],
    errorContent: PROBLEM,
    security: ['basic'],
  },
  {
    'GET /api/v2/handles/{prefix}/{suffix}': {
      id: 'v2Read',
      summary: 'Read the values of a handle',
      description: 'Requires credentials unless the operator allows anonymous reads.',
      responses: { 200: { ...json('The values', z.array(v2Value)), headers }, 304: 'Not modified' },
      security: ['none', 'basic'],
    },
    'PUT /api/v2/handles/{prefix}/{suffix}': {
      id: 'v2Put',
      summary: 'Create a handle, or replace its values',
      headers: conditions,
      body,
      responses: { 201: created, 204: { description: 'The values were replaced', headers } },
      errors: BODY_ERRORS,
    },
    'DELETE /api/v2/handles/{prefix}/{suffix}': {
      id: 'v2Delete',
      summary: 'Delete a handle',
      description: '403 unless the operator has enabled deletion.',
      headers: conditions,
      responses: { 204: 'The handle was deleted' },
    },
    'GET /api/v2/handles/{prefix}': {
      id: 'v2Search',
      summary: 'List the handles of a prefix, or search them by their values',
      description:
        'Every parameter except `limit` and `page` is a search condition: a type with a pattern for its values, such as `URL=*example.org*`. Handles must meet all conditions.',
      headers: z.object({
        Depth: optionalText('`1`: return the public values of each handle instead of its suffix.'),
      }),
      query: z.object({
        limit: z.int().min(0).default(1000).describe('Handles per page. `0`: all handles.'),
        page: z.int().min(1).default(1).describe('Page number, from 1.'),
        URL: optionalText('Pattern for values of the type URL; `*` matches any text.'),
      }),
      responses: {
        200: {
          description:
            'The suffixes, percent-encoded: one per line, or as a JSON array (`Accept`). With `Depth: 1`, an object with the values of each handle',
          content: names,
        },
      },
    },
    'POST /api/v2/handles/{prefix}': {
      id: 'v2Mint',
      summary: 'Create a handle with a generated suffix',
      headers: z.object({
        'Idempotency-Key': optionalText('Requests with the same key create only one handle.'),
      }),
      query: z.object({
        generator: z
          .enum(['uuid', 'juuid'])
          .optional()
          .describe('Generator of the suffix; both create a UUID. Default: `uuid`.'),
        prefix: optionalText('Text before the UUID in the suffix.'),
        suffix: optionalText('Text after the UUID in the suffix.'),
      }),
      body,
      responses: { 201: created },
      errors: BODY_ERRORS,
    },
    'GET /api/v2/handles/?': {
      id: 'v2Prefixes',
      summary: 'List the prefixes that are served here',
      responses: {
        200: {
          description:
            'The prefixes, each with a slash at the end: one per line, or as a JSON array (`Accept`)',
          content: names,
        },
      },
      security: ['none', 'basic'],
    },
  },
);

export type V2Id = (typeof v2Routes)[number]['id'];
