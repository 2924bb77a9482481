// The routes of the record interface.
import { z } from 'zod';
import type { ErrorCode } from '../errors.js';
import { optionalText, pathText } from '../http/schemas.js';
import { type Content, type Security, defineRoutes } from '../http/route-table.js';
import { handleList, record, recordError, recordParameters, sentValue } from '../http/record-schemas.js';

export const RECORD_TAG = {
  name: 'Record interface',
  description: 'The JSON interface of a Handle server: read, write and list records.',
};

export const LOGINS: readonly Security[] = ['basic', 'session'];

const flag = (description: string) => z.enum(['', 'true', 'false']).optional().describe(description);

export const form = {
  pretty: flag('Whether to indent the JSON. Default: `false`.'),
  callback: optionalText('Name of a JavaScript function: the response is JSONP. 403 with credentials.'),
};

export const selection = {
  index: z.array(z.int()).optional().describe('Select the values with this index; may be repeated.'),
  type: z
    .array(z.string())
    .optional()
    .describe(
      'Select the values of this type; may be repeated. A trailing dot includes the subtypes, as in `URL.`. Values that match `index` or `type` are selected.',
    ),
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
export const LOGIN_NEEDED = 'Credentials required (JSON with `responseCode` 402) or wrong (no body)';
const NOT_FOUND = 'The handle does not exist (`responseCode` 100)';

const conditions = z.object({
  'If-Match': optionalText(
    'Write only if the record has this ETag, as returned by a GET of the same caller. `*`: only if it exists.' +
      ' With `index`, the ETag of a GET with the same `index` is accepted too.',
  ),
  'If-None-Match': optionalText(
    '`*`: write only if the record, or the value with this `index`, does not exist. An ETag: only if the record has a different one.',
  ),
});

const values = z.array(sentValue);

/** Describes a route whose path names no handle (recordings "empty handle: …"). */
const withoutHandle = <const Id extends string>(id: Id) => ({
  id,
  handler: 'passThrough' as const,
  summary: 'Send a request without a handle, which the Handle server rejects',
  responses: {},
});

export const recordRoutes = defineRoutes(
  {
    interface: 'record',
    tag: RECORD_TAG,
    parameters: z.object({
      handle: pathText(
        'The handle: a prefix, a slash and a suffix, which may contain slashes. Slashes may be encoded as `%2F`.',
        '21.T11998/page',
      ),
    }),
    errors: PROXY_ERRORS,
    errorContent: inForm(recordError),
    // Responses of the Handle server are relayed unchanged.
    responses: {
      401: LOGIN_NEEDED,
      501: 'Not supported by the Handle server, such as `clientCert=true` (no body)',
      default: inRecordForm('Other responses of the Handle server', recordError),
    },
    security: LOGINS,
  },
  {
    'GET /api/handles/{handle}': {
      id: 'resolveHandle',
      handler: 'read',
      admitsMisses: true,
      summary: 'Read a record',
      description:
        'Served from the cache if possible. With credentials, `publicOnly=false` or `auth=true`, always read from the Handle server.',
      query: z.object({
        ...selection,
        auth: flag('Whether to read from the Handle server instead of the cache. Default: `false`.'),
        publicOnly: flag(
          'Whether to return only the public values; `false` also requests those that only administrators may read. Default: `true` without credentials, `false` with credentials.',
        ),
        ...form,
      }),
      responses: {
        200: {
          ...inRecordForm(
            'The record, or its selected values (`responseCode` 200: no value matches)',
            record,
          ),
          headers: {
            ETag: 'Strong ETag, for `If-None-Match` and `If-Match`.',
            'Cache-Status':
              'Whether the response came from the cache (RFC 9211): `hit`, with a negative `ttl` if stale, or `fwd=miss` or `fwd=bypass`.',
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
      summary: 'Create or replace a record, or some of its values',
      headers: conditions,
      query: z.object({
        index: z
          .array(z.string())
          .optional()
          .describe(
            'Write only the values with this index, instead of the whole record; may be repeated. The indexes must be those of the body; `various` accepts any.',
          ),
        overwrite: flag(
          'Whether to replace existing data. `false`, also without a value: 409 if the handle (with `index`: one of the values) exists. Default: `true`.',
        ),
        mintNewSuffix: flag('Whether to append a random UUID to the handle. Default: `false`.'),
        ...form,
      }),
      body: {
        description: 'The values, as an array or in an object, or a single value',
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
        200: inRecordForm('The record or its values were replaced', record),
        201: inRecordForm('The record or its values were created', record),
        409: inRecordForm('The handle or a value already exists', recordError),
      },
      errors: [...WRITE_ERRORS, 'BODY_TOO_LARGE'],
    },
    'POST /api/handles/{handle}': {
      id: 'resolveHandleByPost',
      // POST is a read on a Handle server, but a cache must write it through (RFC 9111 §4).
      handler: 'forwardRead',
      summary: 'Read a record from the Handle server, with parameters in the body',
      description: 'Never served from the cache. Does not create or change a record.',
      body: {
        description: 'The query parameters of the GET',
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
      summary: 'Delete a handle, or some of its values',
      description:
        'Deletes the handle, or with `index` only these values. 403 unless the operator has enabled deletion.',
      headers: conditions,
      query: z.object({ index: selection.index }),
      responses: {
        200: inRecordForm('The handle or its values were deleted', record),
        403: inRecordForm(
          'Denied by the Handle server or by a traffic rule, or deletion is disabled on this proxy',
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
      summary: 'List the handles of a prefix',
      description: 'Without a login, a copy of the list may be served if the operator allows it.',
      query: z.object({
        prefix: z.string().meta({ description: 'The prefix, without a slash.', example: '21.T11998' }),
        page: z
          .int()
          .min(0)
          .optional()
          .describe('Page number, from 0; requires `pageSize`. By default, all handles are listed.'),
        pageSize: z
          .int()
          .min(0)
          .optional()
          .describe('Handles per page; requires `page`. `0` returns only the count.'),
        ...form,
      }),
      responses: { 200: inRecordForm('The handles and their total count', handleList) },
    },
    'PUT /api/handles/?': withoutHandle('writeWithoutHandle'),
    'POST /api/handles/?': withoutHandle('resolveWithoutHandle'),
    'DELETE /api/handles/?': withoutHandle('deleteWithoutHandle'),
  },
);
