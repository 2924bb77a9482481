// The calls of ePIC v2.
import {
  type Operation,
  PROBLEM,
  type Paths,
  content,
  failures,
  header,
  inPath,
  integer,
  list,
  query,
  ref,
  requestHeader,
  text,
} from './parts.js';

const TAG = 'ePIC v2';
const JSON_TYPE = 'application/json';

const prefix = inPath('prefix', 'The prefix.', '21.T11998');
const suffix = inPath('suffix', 'The suffix; slashes in it may be %2F or stay as they are.', 'page');

const conditions = [
  requestHeader('If-Match', 'Only when the record has this ETag; `*`: only when it exists.'),
  requestHeader('If-None-Match', '`*`: only when the handle does not exist yet.'),
];

const common = failures(
  [
    'BAD_PARAMETER',
    'V2_LOGIN_NEEDED',
    'V2_FORBIDDEN',
    'V2_NOT_FOUND',
    'METHOD_REFUSED',
    'CONDITION_FAILED',
    'TRAFFIC_REFUSED',
    'RATE_LIMITED',
    'INTERNAL',
    'V2_NOT_SUPPORTED',
    'UPSTREAM_UNREACHABLE',
    'UPSTREAM_BAD_ANSWER',
    'BUSY',
    'NOT_LOCKED',
    'OVERLOADED',
    'UPSTREAM_TIMEOUT',
  ],
  PROBLEM,
);
const ofBodies = failures(
  ['V2_BAD_BODY', 'V2_INDEX_TAKEN', 'V2_REJECTED', 'V2_NOT_OWNED', 'BODY_TOO_LARGE', 'V2_NOT_JSON'],
  PROBLEM,
);
const validators = { ETag: header('Strong; the tag of the values this caller may see.') };
const security = [{ basic: [] }];

const body: NonNullable<Operation['requestBody']> = {
  description: 'All values of the record',
  required: true,
  content: {
    [JSON_TYPE]: {
      schema: { ...list(ref('V2BodyValue')), minItems: 1, maxItems: 2048 },
      example: [{ type: 'URL', parsed_data: 'https://example.org/' }],
    },
  },
};

const created = {
  description: 'Created',
  headers: { ...validators, Location: header('The address of the handle.') },
  ...content(JSON_TYPE, ref('V2Minted')),
};

const read: Operation = {
  operationId: 'v2Read',
  tags: [TAG],
  summary: 'Read the values of a handle',
  parameters: [prefix, suffix],
  responses: {
    200: { description: 'The values', headers: validators, ...content(JSON_TYPE, list(ref('V2Value'))) },
    304: { description: 'Not modified' },
    ...common,
  },
  security: [{}, ...security],
};

const put: Operation = {
  operationId: 'v2Put',
  tags: [TAG],
  summary: 'Create a handle, or replace its values',
  parameters: [prefix, suffix, ...conditions],
  requestBody: body,
  responses: { 201: created, 204: { description: 'Replaced', headers: validators }, ...common, ...ofBodies },
  security,
};

const mint: Operation = {
  operationId: 'v2Mint',
  tags: [TAG],
  summary: 'Create a handle under a new name',
  parameters: [
    prefix,
    query('generator', 'How the name is made.', { enum: ['uuid', 'juuid'] }),
    query('prefix', 'Text before the name.'),
    query('suffix', 'Text after the name.'),
    requestHeader('Idempotency-Key', 'Requests with the same key create one handle.'),
  ],
  requestBody: body,
  responses: { 201: created, ...common, ...ofBodies },
  security,
};

const remove: Operation = {
  operationId: 'v2Delete',
  tags: [TAG],
  summary: 'Delete a handle',
  description: '403 unless the operator has enabled deletion.',
  parameters: [prefix, suffix, ...conditions],
  responses: { 204: { description: 'Deleted' }, ...common },
  security,
};

const names = { 'text/plain': { schema: text }, [JSON_TYPE]: { schema: { type: ['array', 'object'] } } };

const search: Operation = {
  operationId: 'v2Search',
  tags: [TAG],
  summary: 'The handles of a prefix, or those that hold certain values',
  description: 'Any other parameter is a type and the pattern of its value, such as `URL=*example.org*`.',
  parameters: [
    prefix,
    query('limit', 'Handles on a page; 0: all.', { ...integer, minimum: 0, default: 1000 }),
    query('page', 'Counted from 1.', { ...integer, minimum: 1, default: 1 }),
    query('URL', 'The value of the type URL; `*` stands for any text.'),
    requestHeader('Depth', '`1`: the records instead of their names.'),
  ],
  responses: { 200: { description: 'Names, or records', content: names }, ...common },
  security,
};

const prefixes: Operation = {
  operationId: 'v2Prefixes',
  tags: [TAG],
  summary: 'The prefixes served here',
  responses: { 200: { description: 'One a line', content: names }, ...common },
  security: [{}, ...security],
};

export const v2Paths = (): Paths => ({
  '/api/v2/handles/{prefix}/{suffix}': { get: read, put, delete: remove },
  '/api/v2/handles/{prefix}': { get: search, post: mint },
  '/api/v2/handles': { get: prefixes },
});
