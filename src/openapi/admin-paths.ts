// The calls of the admin listener.
import {
  type Operation,
  type Paths,
  type ResponseObject,
  PROBLEM,
  type Schema,
  content,
  documentCall,
  documentPageCall,
  failures,
  list,
  object,
  query,
  ref,
  text,
} from './parts.js';

const refusals = failures(['ADMIN_TOKEN_NEEDED', 'ADMIN_FOREIGN', 'METHOD_REFUSED'], PROBLEM);
const security = [{}, { adminToken: [] }];

const json = (description: string, schema: Schema): ResponseObject => ({
  description,
  ...content('application/json', schema),
});

const get = (
  operationId: string,
  summary: string,
  responses: Operation['responses'],
): { get: Operation } => ({
  get: { operationId, tags: ['Admin'], summary, responses: { ...responses, ...refusals }, security },
});

const readiness = object({ status: { enum: ['ready', 'not ready'] }, notReady: list(text) });

const ofBodies = failures(['ADMIN_BAD_BODY', 'BODY_TOO_LARGE'], PROBLEM);

const integer: Schema = { type: 'integer' };

const body = (
  name: string,
  description: string,
  example: unknown,
): NonNullable<Operation['requestBody']> => ({
  description,
  required: true,
  content: { 'application/json': { schema: ref(name), example } },
});

const inspect: Operation = {
  operationId: 'lookIntoCache',
  tags: ['Admin'],
  summary: 'The cache entries of a handle',
  parameters: [{ ...query('handle', 'The handle.'), required: true, example: '21.T1/a' }],
  responses: {
    200: json('Every entry', ref('CacheCopies')),
    ...failures(['BAD_PARAMETER'], PROBLEM),
    ...refusals,
  },
  security,
};

const purge: Operation = {
  operationId: 'purge',
  tags: ['Admin'],
  summary: 'Invalidate handles on all instances',
  description: 'With `soft` the entries become stale: served only while the Handle server fails.',
  requestBody: body('PurgeOrder', 'Which handles', { handle: '21.T11998/page' }),
  responses: {
    200: json(
      'Done; `shared` false: other instances are invalidated when Redis is back',
      object({ purged: { type: 'object' }, soft: { type: 'boolean' }, shared: { type: 'boolean' } }),
    ),
    ...ofBodies,
    ...refusals,
  },
  security,
};

const exportRecords: Operation = {
  operationId: 'exportRecords',
  tags: ['Admin'],
  summary: 'The records of a prefix in memory, one JSON object per line',
  parameters: [{ ...query('prefix', 'The prefix, without a slash.'), required: true, example: '21.T11998' }],
  responses: {
    200: { description: 'Records with their times', ...content('application/x-ndjson', text) },
    ...failures(['BAD_PARAMETER'], PROBLEM),
    ...refusals,
  },
  security,
};

const importRecords: Operation = {
  operationId: 'importRecords',
  tags: ['Admin'],
  summary: 'Put exported records into memory',
  description: 'They are stale: served only while the Handle server fails, or where there is none.',
  requestBody: {
    description: 'Up to 4 MiB of lines of an export',
    required: true,
    content: { 'application/x-ndjson': { schema: text } },
  },
  responses: {
    200: json(
      'How many are in memory now, are not needed, and are no records',
      object({ restored: { type: 'integer' }, kept: { type: 'integer' }, refused: { type: 'integer' } }),
    ),
    ...failures(['BODY_TOO_LARGE'], PROBLEM),
    ...refusals,
  },
  security,
};

const traffic = object({
  rules: list(object({ name: text, matched: integer, limited: integer, shadowed: integer })),
  networks: list(object({ name: text, misses: integer })),
  agents: list(object({ name: text, misses: integer })),
  blocked: list(
    object({
      network: text,
      until: { type: 'string', format: 'date-time' },
      reason: { enum: ['unknown-names', 'most-misses'] },
    }),
  ),
});

const unblock: Operation = {
  operationId: 'unblockNetwork',
  tags: ['Admin'],
  summary: 'End the limit of a network, in all instances',
  parameters: [
    {
      name: 'network',
      in: 'path',
      required: true,
      description: 'The network as `GET /traffic` lists it, or an address in it.',
      schema: text,
      example: '192.0.2.0/24',
    },
  ],
  responses: {
    204: { description: 'Done; other instances follow within two seconds' },
    ...failures(['ADMIN_NOT_BLOCKED'], PROBLEM),
    ...refusals,
  },
  security,
};

const logLevel: Operation = {
  operationId: 'setLogLevel',
  tags: ['Admin'],
  summary: 'Set the log level',
  requestBody: body('LogLevel', 'Until the next start', { level: 'debug' }),
  responses: { 200: json('Done', ref('LogLevel')), ...ofBodies, ...refusals },
  security,
};

export const adminPaths: Paths = {
  '/healthz': get('health', 'Liveness', {
    200: json('The process runs', { type: 'object', properties: { status: { const: 'ok' } } }),
    503: json(
      'An event loop has stood still for longer than `admin.maxEventLoopDelay` within the last 10 s',
      {
        type: 'object',
        properties: { status: { const: 'held' }, heldMs: { type: 'integer' } },
      },
    ),
  }),
  '/readyz': get('readiness', 'Readiness', {
    200: json('Ready', readiness),
    503: json('Not ready, because of these parts', readiness),
  }),
  '/metrics': get('metrics', 'Metrics for Prometheus', {
    200: { description: 'Text exposition format 0.0.4', ...content('text/plain', text) },
  }),
  '/': get('statusPage', 'The status page', {
    200: { description: 'The page, without figures', ...content('text/html', text) },
  }),
  '/events': get('events', 'The statistics once a second, as server-sent events', {
    200: {
      description: 'Messages with the response of `/stats` as data, and with limited networks',
      ...content('text/event-stream', text),
    },
    ...failures(['ADMIN_BUSY'], PROBLEM),
  }),
  '/stats': get('stats', 'The statistics', { 200: json('Statistics', { type: 'object' }) }),
  '/traffic': get('traffic', 'Traffic rules, the clients with the most misses, and limited networks', {
    200: json('The counts of rules since the start, of clients in the last five to ten minutes', traffic),
  }),
  '/traffic/blocked/{network}': { delete: unblock },
  '/cache': { get: inspect },
  '/purge': { post: purge },
  '/export': { get: exportRecords },
  '/import': { post: importRecords },
  '/log-level': { put: logLevel },
  '/openapi': documentPageCall('Admin'),
  '/openapi.json': documentCall('Admin'),
};
