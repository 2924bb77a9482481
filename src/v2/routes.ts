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
      .describe('Text; an object for HS_ADMIN, a list for HS_VLIST; null when there is no such form.'),
    data: z.string().meta({ description: 'The bytes in base64.', contentEncoding: 'base64' }),
    timestamp: z.string().optional(),
    ttl_type: z.literal([0, 1]).describe('0: seconds, 1: absolute time.'),
    ttl: z.union([z.int(), z.string()]),
    refs: z.array(z.string().meta({ examples: ['1:21.T11998/abc'] })),
    privs: z.string().regex(/^[r-][w-][r-][w-]$/),
  })
  .meta({ id: 'V2Value' });

const minted = z.strictObject({ 'epic-pid': z.string() }).meta({ id: 'V2Minted' });

const conditions = z.object({
  'If-Match': optionalText('Only when the record has this ETag; `*`: only when it exists.'),
  'If-None-Match': optionalText('`*`: only when the handle does not exist yet.'),
});

const headers = { ETag: 'Strong; the tag of the values this caller may see.' };

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
  ...json('Created', minted),
  headers: { ...headers, Location: 'The address of the handle.' },
};

const names = {
  'text/plain': z.string(),
  'application/json': z.union([z.array(z.unknown()), anyObject]),
};

export const v2Routes = defineRoutes(
  {
    interface: 'v2',
    tag: { name: 'ePIC v2', description: 'The same handles through the ePIC API, version 2.' },
    handler: 'v2',
    parameters: z.object({
      prefix: pathText('The prefix.', '21.T11998'),
      suffix: pathText('The suffix; slashes in it may be %2F or stay as they are.', 'page'),
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
      responses: { 200: { ...json('The values', z.array(v2Value)), headers }, 304: 'Not modified' },
      security: ['none', 'basic'],
    },
    'PUT /api/v2/handles/{prefix}/{suffix}': {
      id: 'v2Put',
      summary: 'Create a handle, or replace its values',
      headers: conditions,
      body,
      responses: { 201: created, 204: { description: 'Replaced', headers } },
      errors: BODY_ERRORS,
    },
    'DELETE /api/v2/handles/{prefix}/{suffix}': {
      id: 'v2Delete',
      summary: 'Delete a handle',
      description: '403 unless the operator has enabled deletion.',
      headers: conditions,
      responses: { 204: 'Deleted' },
    },
    'GET /api/v2/handles/{prefix}': {
      id: 'v2Search',
      summary: 'The handles of a prefix, or those that hold certain values',
      description: 'Any other parameter is a type and the pattern of its value, such as `URL=*example.org*`.',
      headers: z.object({ Depth: optionalText('`1`: the records instead of their names.') }),
      query: z.object({
        limit: z.int().min(0).default(1000).describe('Handles on a page; 0: all.'),
        page: z.int().min(1).default(1).describe('Counted from 1.'),
        URL: optionalText('The value of the type URL; `*` stands for any text.'),
      }),
      responses: { 200: { description: 'Names, or records', content: names } },
    },
    'POST /api/v2/handles/{prefix}': {
      id: 'v2Mint',
      summary: 'Create a handle under a new name',
      headers: z.object({
        'Idempotency-Key': optionalText('Requests with the same key create one handle.'),
      }),
      query: z.object({
        generator: z.enum(['uuid', 'juuid']).optional().describe('How the name is made.'),
        prefix: optionalText('Text before the name.'),
        suffix: optionalText('Text after the name.'),
      }),
      body,
      responses: { 201: created },
      errors: BODY_ERRORS,
    },
    'GET /api/v2/handles/?': {
      id: 'v2Prefixes',
      summary: 'The prefixes served here',
      responses: { 200: { description: 'One a line', content: names } },
      security: ['none', 'basic'],
    },
  },
);

export type V2Id = (typeof v2Routes)[number]['id'];
