// The record interface, as a Handle server has it.
import {
  type Operation,
  type Parameter,
  type Paths,
  failures,
  header,
  ref,
  requestHeader,
  text,
} from './parts.js';

const TAG = 'Record interface';
const JSON_TYPE = 'application/json';
const flag = { type: 'string', enum: ['', 'true', 'false'] };

const handle: Parameter = {
  name: 'handle',
  in: 'path',
  required: true,
  description:
    'Prefix, slash, suffix. The slash may stay as it is or be %2F; a suffix may hold more of them.',
  schema: text,
  example: '21.T11998/page',
};

const query = (name: string, description: string, schema: Parameter['schema'] = text): Parameter => ({
  name,
  in: 'query',
  description,
  schema,
});

const indexes = query('index', 'Only the values with these indexes; may be repeated.', {
  type: 'array',
  items: { type: 'integer' },
});

const form = [
  query('pretty', 'Indented JSON.', flag),
  query('callback', 'JSONP: the name of the function that gets the answer.'),
];

/** With `callback` every answer is a script. */
const inForm = (schema: Parameter['schema']) => ({
  content: { [JSON_TYPE]: { schema }, 'application/javascript': { schema: text } },
});

const record = inForm(ref('Record'));
/** The Handle server's own answers come in its form, and its words. */
const anyOther = { default: { description: 'What the Handle server answers by itself', ...record } };
const proxyFailures = failures(
  [
    'BAD_PATH',
    'BAD_PARAMETER',
    'EMPTY_HANDLE',
    'HANDLE_TOO_LONG',
    'REQUEST_LINE_TOO_LONG',
    'RATE_LIMITED',
    'UPSTREAM_BAD_ANSWER',
    'UPSTREAM_FAILED',
    'UPSTREAM_UNREACHABLE',
    'UPSTREAM_RESTING',
    'OVERLOADED',
    'UPSTREAM_TIMEOUT',
  ],
  record,
);

const resolve: Operation = {
  operationId: 'resolveHandle',
  tags: [TAG],
  summary: 'Read a record',
  description:
    'From the cache where that is allowed; with credentials, `publicOnly=false` or `auth=true` always from the Handle server.',
  parameters: [
    handle,
    indexes,
    query(
      'type',
      'Only the values of these types; `URL.` with the dot means its subtypes too; may be repeated.',
      {
        type: 'array',
        items: text,
      },
    ),
    query('auth', 'Ask the Handle server, not the cache.', flag),
    query('publicOnly', '`false`: also values that only administrators may read.', flag),
    ...form,
  ],
  responses: {
    200: {
      description: 'The record, or those of its values that were asked for (responseCode 200: none of them)',
      headers: {
        ETag: header('Strong; send it back in If-None-Match.'),
        'Cache-Status': header('hit, miss or stale (RFC 9211).'),
      },
      ...record,
    },
    304: { description: 'The client has it already' },
    404: { description: 'There is no such handle (responseCode 100)', ...record },
    ...proxyFailures,
    ...anyOther,
  },
  security: [{}, { basic: [] }, { session: [] }],
};

const writes = [{ basic: [] }, { session: [] }];
const noDeletion = { 403: { description: 'Not allowed; or deletion is off on this proxy', ...record } };

const conditions = [
  requestHeader(
    'If-Match',
    'Write only when the record still has this `ETag`, as a GET of the same caller shows it; `*`: only when it exists.' +
      ' With `index`: the ETag of a GET with the same `index`.',
  ),
  requestHeader(
    'If-None-Match',
    '`*`: write only when nothing is there; an ETag: only when the record has another one.',
  ),
];

const conditionFailed = failures(['CONDITION_FAILED'], record);

const put: Operation = {
  operationId: 'writeHandle',
  tags: [TAG],
  summary: 'Create or replace a record, or values of it',
  parameters: [
    handle,
    ...conditions,
    {
      ...indexes,
      description: 'Only these values, which have to be those of the body; `various`: any.',
      schema: { type: 'array', items: text },
    },
    query('overwrite', '`false`: 409 when the handle, or a value with that index, exists.', flag),
    query('mintNewSuffix', 'Put a random UUID behind the suffix.', flag),
    ...form,
  ],
  requestBody: {
    description: 'The values, alone or in an object',
    required: true,
    content: {
      [JSON_TYPE]: {
        schema: {
          anyOf: [
            { type: 'array', items: ref('Value') },
            ref('Value'),
            {
              type: 'object',
              required: ['values'],
              properties: { handle: text, values: { type: 'array', items: ref('Value') } },
            },
          ],
        },
        example: [{ index: 1, type: 'URL', data: 'https://example.org/' }],
      },
    },
  },
  responses: {
    200: { description: 'Replaced', ...record },
    201: { description: 'Created', ...record },
    401: { description: 'A login is needed (responseCode 402); empty when the password is wrong', ...record },
    409: { description: 'It exists already', ...record },
    ...conditionFailed,
    ...proxyFailures,
    ...failures(['BODY_TOO_LARGE'], record),
    ...anyOther,
  },
  security: writes,
};

const remove: Operation = {
  operationId: 'deleteHandle',
  tags: [TAG],
  summary: 'Delete a handle, or values of it',
  description: 'Off unless the operator turned it on: then 403.',
  parameters: [handle, ...conditions, indexes],
  responses: {
    200: { description: 'Deleted', ...record },
    ...noDeletion,
    ...conditionFailed,
    ...proxyFailures,
    ...anyOther,
  },
  security: writes,
};

const handles = inForm(ref('HandleList'));

const list: Operation = {
  operationId: 'listHandles',
  tags: [TAG],
  summary: 'The handles of a prefix',
  parameters: [
    { ...query('prefix', 'The prefix.'), required: true, example: '21.T11998' },
    query('page', 'Counted from 0; with pageSize only.', { type: 'integer', minimum: 0 }),
    query('pageSize', '0: only the count; with page only.', { type: 'integer', minimum: 0 }),
    ...form,
  ],
  responses: {
    200: { description: 'The list', ...handles },
    401: {
      description: 'A login is needed (responseCode 402); empty when the password is wrong',
      ...handles,
    },
    ...proxyFailures,
    default: {
      description: 'What the Handle server answers by itself',
      ...handles,
    },
  },
  security: writes,
};

export const recordPaths = (): Paths => ({
  '/api/handles/{handle}': { get: resolve, put, delete: remove },
  '/api/handles': { get: list },
});
