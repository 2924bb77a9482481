// ePIC v2, which this proxy translates into calls of the record interface.
import {
  type Operation,
  type Parameter,
  type Paths,
  type Schema,
  content,
  failures,
  header,
  ref,
  requestHeader,
  text,
} from './parts.js';

const TAG = 'ePIC v2';
const JSON_TYPE = 'application/json';

const inPath = (name: string, description: string, example: string): Parameter => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: text,
  example,
});
const prefix = inPath('prefix', 'The prefix.', '21.T11998');
const suffix = inPath('suffix', 'The suffix; slashes in it may be %2F or stay as they are.', 'page');

const query = (name: string, description: string, schema: Schema = text): Parameter => ({
  name,
  in: 'query',
  description,
  schema,
});
const conditions = [
  requestHeader(
    'If-Match',
    'Only when the record is still the one with this ETag; `*`: only when it exists.',
  ),
  requestHeader('If-None-Match', '`*`: only when the handle does not exist yet.'),
];

const problem = content('application/problem+json', ref('Problem'));
const common = failures(
  [
    'BAD_PARAMETER',
    'V2_LOGIN_NEEDED',
    'V2_FORBIDDEN',
    'V2_NOT_FOUND',
    'METHOD_REFUSED',
    'CONDITION_FAILED',
    'RATE_LIMITED',
    'INTERNAL',
    'V2_NOT_SUPPORTED',
    'UPSTREAM_UNREACHABLE',
    'UPSTREAM_BAD_ANSWER',
    'BUSY',
    'OVERLOADED',
    'UPSTREAM_TIMEOUT',
  ],
  problem,
);
const ofBodies = failures(
  ['V2_BAD_BODY', 'V2_INDEX_TAKEN', 'V2_REJECTED', 'V2_NOT_OWNED', 'BODY_TOO_LARGE', 'V2_NOT_JSON'],
  problem,
);
const validators = { ETag: header('Strong; the tag of the values this caller may see.') };
const values = { type: 'array', items: ref('V2Value') };
const security = [{ basic: [] }];

const body: NonNullable<Operation['requestBody']> = {
  description: 'All values of the record',
  required: true,
  content: {
    [JSON_TYPE]: {
      schema: { type: 'array', minItems: 1, maxItems: 2048, items: ref('V2BodyValue') },
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
    200: { description: 'The values', headers: validators, ...content(JSON_TYPE, values) },
    304: { description: 'The client has them already' },
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
    query('prefix', 'What stands before the name.'),
    query('suffix', 'What stands behind the name.'),
    requestHeader('Idempotency-Key', 'The same key makes the same handle, however often it is sent.'),
  ],
  requestBody: body,
  responses: { 201: created, ...common, ...ofBodies },
  security,
};

const remove: Operation = {
  operationId: 'v2Delete',
  tags: [TAG],
  summary: 'Delete a handle',
  description: 'Off unless the operator turned it on: then 403.',
  parameters: [prefix, suffix, ...conditions],
  responses: { 204: { description: 'Deleted' }, ...common },
  security,
};

const names = { 'text/plain': { schema: text }, [JSON_TYPE]: { schema: { type: ['array', 'object'] } } };

const search: Operation = {
  operationId: 'v2Search',
  tags: [TAG],
  summary: 'The handles of a prefix, or those that hold certain values',
  description: 'Any other parameter is a type and what its value has to be, such as `URL=*example.org*`.',
  parameters: [
    prefix,
    query('limit', 'Handles on a page; 0: all.', { type: 'integer', minimum: 0, default: 1000 }),
    query('page', 'Counted from 1.', { type: 'integer', minimum: 1, default: 1 }),
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
