// The calls of the record interface.
import { batchPaths, withBatch } from './batch-paths.js';
import {
  type Operation,
  type Paths,
  failures,
  header,
  inPath,
  integer,
  list,
  object,
  query,
  ref,
  requestHeader,
  text,
} from './parts.js';
import { PROXY_CODES, RECORD_TAG, flag, form, inForm, selection } from './record-parts.js';

const JSON_TYPE = 'application/json';
const handle = inPath(
  'handle',
  'Prefix, slash, suffix. The slash may be %2F; a suffix may contain slashes.',
  '21.T11998/page',
);

const [indexes, types] = selection;

const record = inForm(ref('Record'));
const error = inForm(ref('RecordError'));
/** Responses of the Handle server are relayed in its own form. */
const RELAYED = 'Other responses of the Handle server';
const anyOther = { default: { description: RELAYED, ...error } };
const LOGIN_NEEDED = 'A login is needed (responseCode 402); empty when the password is wrong';
const proxyFailures = failures(PROXY_CODES, error);

const resolve: Operation = {
  operationId: 'resolveHandle',
  tags: [RECORD_TAG],
  summary: 'Read a record',
  description:
    'From the cache where that is allowed; with credentials, `publicOnly=false` or `auth=true` always from the Handle server.',
  parameters: [
    handle,
    indexes,
    types,
    query('auth', 'Read from the Handle server, not from the cache.', flag),
    query('publicOnly', '`false`: also values that only administrators may read.', flag),
    ...form,
  ],
  responses: {
    200: {
      description: 'The record, or its selected values (responseCode 200: none of them)',
      headers: {
        ETag: header('Strong; send it back in If-None-Match.'),
        'Cache-Status': header('hit, miss or stale (RFC 9211).'),
      },
      ...record,
    },
    304: { description: 'Not modified' },
    404: { description: 'There is no such handle (responseCode 100)', ...error },
    ...proxyFailures,
    ...anyOther,
  },
  security: [{}, { basic: [] }, { session: [] }],
};

const writes = [{ basic: [] }, { session: [] }];
const noDeletion = {
  403: {
    description: 'Not allowed, here or by the Handle server; or deletion is off on this proxy',
    ...error,
  },
};

const conditions = [
  requestHeader(
    'If-Match',
    'Write only when the record still has this `ETag`, as a GET of the same caller shows it; `*`: only when it exists.' +
      ' With `index`: also the ETag of a GET with the same `index`.',
  ),
  requestHeader(
    'If-None-Match',
    '`*`: write only when nothing is there; an ETag: only when the record has another one.',
  ),
];

const conditionFailed = failures(['CONDITION_FAILED'], error);

const put: Operation = {
  operationId: 'writeHandle',
  tags: [RECORD_TAG],
  summary: 'Create or replace a record, or values of it',
  parameters: [
    handle,
    ...conditions,
    {
      ...indexes,
      description: 'Only these values, which have to be those of the body; `various`: any.',
      schema: list(text),
    },
    query(
      'overwrite',
      '`false`, or no value: 409 when the handle, or a value with that index, exists.',
      flag,
    ),
    query('mintNewSuffix', '`true`: put a random UUID behind the suffix.', flag),
    ...form,
  ],
  requestBody: {
    description: 'The values, alone or in an object',
    required: true,
    content: {
      [JSON_TYPE]: {
        schema: {
          anyOf: [
            list(ref('SentValue')),
            ref('SentValue'),
            object({ 'handle?': text, values: list(ref('SentValue')) }),
          ],
        },
        example: [{ index: 1, type: 'URL', data: 'https://example.org/' }],
      },
    },
  },
  responses: {
    200: { description: 'Replaced', ...record },
    201: { description: 'Created', ...record },
    401: { description: LOGIN_NEEDED, ...error },
    409: { description: 'It exists already', ...error },
    ...conditionFailed,
    ...proxyFailures,
    ...failures(['BODY_TOO_LARGE'], error),
    ...anyOther,
  },
  security: writes,
};

const remove: Operation = {
  operationId: 'deleteHandle',
  tags: [RECORD_TAG],
  summary: 'Delete a handle, or values of it',
  description: '403 unless the operator has enabled deletion.',
  parameters: [handle, ...conditions, indexes],
  responses: {
    200: { description: 'Deleted', ...record },
    ...conditionFailed,
    ...proxyFailures,
    ...noDeletion,
    ...anyOther,
  },
  security: writes,
};

const handles = inForm(ref('HandleList'));

const listHandles: Operation = {
  operationId: 'listHandles',
  tags: [RECORD_TAG],
  summary: 'The handles of a prefix',
  parameters: [
    { ...query('prefix', 'The prefix.'), required: true, example: '21.T11998' },
    query('page', 'Counted from 0; with pageSize only.', { ...integer, minimum: 0 }),
    query('pageSize', '0: only the count; with page only.', { ...integer, minimum: 0 }),
    ...form,
  ],
  responses: {
    200: { description: 'The list', ...handles },
    401: { description: LOGIN_NEEDED, ...error },
    ...proxyFailures,
    ...anyOther,
  },
  security: writes,
};

const post: Operation = {
  operationId: 'resolveHandleByPost',
  tags: [RECORD_TAG],
  summary: 'Read a record at the Handle server, with the parameters in the body',
  description: 'Never from the cache. A POST creates nothing.',
  parameters: [handle],
  requestBody: {
    description: 'The parameters of the GET',
    required: false,
    content: { [JSON_TYPE]: { schema: ref('RecordParameters'), example: { index: 1, pretty: true } } },
  },
  responses: {
    200: { description: 'The record, or its selected values', ...record },
    ...proxyFailures,
    ...anyOther,
  },
  security: [{}, ...writes],
};

export const recordPaths = ({ batch }: { batch: boolean }): Paths => ({
  '/api/handles/{handle}': { get: resolve, put, post, delete: remove },
  '/api/handles': { get: batch ? withBatch(listHandles) : listHandles },
  ...(batch && batchPaths()),
});
