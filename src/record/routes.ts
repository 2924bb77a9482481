// The routes of the record interface.
import { z } from 'zod';
import type { ErrorCode } from '../errors.js';
import { optionalText, pathText } from '../http/schemas.js';
import { type Content, type Security, defineRoutes } from '../http/route-table.js';
import { handleList, record, recordError, recordParameters, sentValue } from './schemas.js';

export const RECORD_TAG = { name: 'Record interface', description: 'The interface of a Handle server.' };

export const LOGINS: readonly Security[] = ['basic', 'session'];

const flag = (description: string) => z.enum(['', 'true', 'false']).optional().describe(description);

export const form = {
  pretty: flag('Indented JSON.'),
  callback: optionalText('JSONP: the name of the function. With a login it is 403.'),
};

export const selection = {
  index: z.array(z.int()).optional().describe('Only the values with these indexes; may be repeated.'),
  type: z
    .array(z.string())
    .optional()
    .describe('Only the values of these types; `URL.` with the dot means its subtypes too; may be repeated.'),
};

/** Describes content as JSON, or as a script with `callback`. */
export const inForm = (schema: z.ZodType): Content => ({
  'application/json': schema,
  'application/javascript': z.string(),
});

export const inRecordForm = (description: string, schema: z.ZodType) => ({
  description,
  content: inForm(schema),
});

/** Proxy errors that any call may return. */
export const PROXY_ERRORS: readonly ErrorCode[] = [
  'BAD_PATH',
  'BAD_PARAMETER',
  'EMPTY_HANDLE',
  'HANDLE_TOO_LONG',
  'REQUEST_LINE_TOO_LONG',
  'JSONP_WITH_LOGIN',
  'TRAFFIC_REFUSED',
  'RATE_LIMITED',
  'UPSTREAM_INVALID_RESPONSE',
  'UPSTREAM_FAILED',
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_BACKOFF',
  'UPSTREAM_BUSY',
  'OVERLOADED',
  'UPSTREAM_TIMEOUT',
];

/** Additional proxy errors for writes. */
const WRITE_ERRORS: readonly ErrorCode[] = [
  'PRECONDITION_FAILED',
  'CONCURRENT_MODIFICATION',
  'LOCK_UNAVAILABLE',
  'INVALIDATION_UNCONFIRMED',
];

/** Description of the 401. It has no schema: a wrong password gets no body, but a missing login does. */
export const LOGIN_NEEDED = 'A login is needed: JSON with responseCode 402. The login is wrong: no body.';
const NOT_FOUND = 'There is no such handle (responseCode 100)';

const conditions = z.object({
  'If-Match': optionalText(
    'Write only when the record still has this `ETag`, as a GET of the same caller shows it; `*`: only when it exists.' +
      ' With `index`: also the ETag of a GET with the same `index`.',
  ),
  'If-None-Match': optionalText(
    '`*`: write only when nothing is there; an ETag: only when the record has another one.',
  ),
});

const values = z.array(sentValue);

/** Describes a route whose path names no handle (recordings "empty handle: …"). */
const withoutHandle = <const Id extends string>(id: Id) => ({
  id,
  handler: 'passThrough' as const,
  summary: 'Relayed without a handle, which the Handle server refuses',
  responses: {},
});

export const recordRoutes = defineRoutes(
  {
    interface: 'record',
    tag: RECORD_TAG,
    parameters: z.object({
      handle: pathText(
        'Prefix, slash, suffix. The slash may be %2F; a suffix may contain slashes.',
        '21.T11998/page',
      ),
    }),
    errors: PROXY_ERRORS,
    errorContent: inForm(recordError),
    // Responses of the Handle server are relayed unchanged.
    responses: {
      401: LOGIN_NEEDED,
      501: 'The Handle server does not support it, such as `clientCert=true`; without a body',
      default: inRecordForm('Other responses of the Handle server', recordError),
    },
    security: LOGINS,
  },
  {
    'GET /api/handles/{handle}': {
      id: 'resolveHandle',
      // Handles reads outside the read path: with credentials, or for private values.
      handler: 'forwardRead',
      summary: 'Read a record',
      description:
        'From the cache where that is allowed; with credentials, `publicOnly=false` or `auth=true` always from the Handle server.',
      query: z.object({
        ...selection,
        auth: flag('Read from the Handle server, not from the cache.'),
        publicOnly: flag('`false`: also values that only administrators may read.'),
        ...form,
      }),
      responses: {
        200: {
          ...inRecordForm('The record, or its selected values (responseCode 200: none of them)', record),
          headers: {
            ETag: 'Strong; send it back in If-None-Match.',
            'Cache-Status': 'hit, miss or stale (RFC 9211).',
          },
        },
        304: 'Not modified',
        404: inRecordForm(NOT_FOUND, recordError),
      },
      security: ['none', ...LOGINS],
    },
    'PUT /api/handles/{handle}': {
      id: 'writeHandle',
      handler: 'write',
      summary: 'Create or replace a record, or values of it',
      headers: conditions,
      query: z.object({
        index: z
          .array(z.string())
          .optional()
          .describe('Only these values, which have to be those of the body; `various`: any.'),
        overwrite: flag('`false`, or no value: 409 when the handle, or a value with that index, exists.'),
        mintNewSuffix: flag('`true`: put a random UUID behind the suffix.'),
        ...form,
      }),
      body: {
        description: 'The values, alone or in an object',
        content: {
          'application/json': z.union([
            values,
            sentValue,
            z.object({ handle: z.string().optional(), values }),
          ]),
        },
        example: [{ index: 1, type: 'URL', data: 'https://example.org/' }],
      },
      responses: {
        200: inRecordForm('Replaced', record),
        201: inRecordForm('Created', record),
        409: inRecordForm('It exists already', recordError),
      },
      errors: [...WRITE_ERRORS, 'BODY_TOO_LARGE'],
    },
    'POST /api/handles/{handle}': {
      id: 'resolveHandleByPost',
      // POST is a read on a Handle server, but a cache must write it through (RFC 9111 §4).
      handler: 'forwardRead',
      summary: 'Read a record at the Handle server, with the parameters in the body',
      description: 'Never from the cache. A POST creates nothing.',
      body: {
        description: 'The parameters of the GET',
        isOptional: true,
        content: { 'application/json': recordParameters },
        example: { index: 1, pretty: true },
      },
      responses: {
        200: inRecordForm('The record, or its selected values', record),
        404: inRecordForm(NOT_FOUND, recordError),
      },
      security: ['none', ...LOGINS],
    },
    'DELETE /api/handles/{handle}': {
      id: 'deleteHandle',
      handler: 'write',
      summary: 'Delete a handle, or values of it',
      description: '403 unless the operator has enabled deletion.',
      headers: conditions,
      query: z.object({ index: selection.index }),
      responses: {
        200: inRecordForm('Deleted', record),
        403: inRecordForm(
          'Not allowed, here or by the Handle server; or deletion is off on this proxy',
          recordError,
        ),
        404: inRecordForm(NOT_FOUND, recordError),
      },
      errors: WRITE_ERRORS,
    },
    'GET /api/handles/?': {
      id: 'listHandles',
      interface: 'list',
      handler: 'forwardRead',
      summary: 'The handles of a prefix',
      description: 'Without a login from the mirror of the prefix, where that is allowed.',
      query: z.object({
        prefix: z.string().meta({ description: 'The prefix.', example: '21.T11998' }),
        page: z.int().min(0).optional().describe('Counted from 0; with pageSize only.'),
        pageSize: z.int().min(0).optional().describe('0: only the count; with page only.'),
        ...form,
      }),
      responses: { 200: inRecordForm('The list', handleList) },
    },
    'PUT /api/handles/?': withoutHandle('writeWithoutHandle'),
    'POST /api/handles/?': withoutHandle('resolveWithoutHandle'),
    'DELETE /api/handles/?': withoutHandle('deleteWithoutHandle'),
  },
);
