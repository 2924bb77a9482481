// The operator's listener, which has an address of its own.
import {
  type Operation,
  type Paths,
  type ResponseObject,
  type Schema,
  content,
  failures,
  ref,
  text,
} from './parts.js';

const problem = content('application/problem+json', ref('Problem'));
const refusals = failures(['ADMIN_TOKEN_NEEDED', 'ADMIN_FOREIGN'], problem);
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

const readiness: Schema = {
  type: 'object',
  required: ['status', 'notReady'],
  properties: {
    status: { enum: ['ready', 'not ready'] },
    notReady: { type: 'array', items: { type: 'string' } },
  },
};

const ofBodies = failures(['ADMIN_BAD_BODY', 'BODY_TOO_LARGE'], problem);

const body = (
  name: string,
  description: string,
  example: unknown,
): NonNullable<Operation['requestBody']> => ({
  description,
  required: true,
  content: { 'application/json': { schema: ref(name), example } },
});

const look: Operation = {
  operationId: 'lookIntoCache',
  tags: ['Admin'],
  summary: 'What is kept of a handle',
  parameters: [
    {
      name: 'handle',
      in: 'query',
      required: true,
      description: 'The handle.',
      schema: text,
      example: '21.T1/a',
    },
  ],
  responses: {
    200: json('Every copy', ref('CacheCopies')),
    ...failures(['BAD_PARAMETER'], problem),
    ...refusals,
  },
  security,
};

const purge: Operation = {
  operationId: 'purge',
  tags: ['Admin'],
  summary: 'Forget handles, on all instances',
  description: 'With `soft` they stay as stand-ins for a Handle server that fails.',
  requestBody: body('PurgeOrder', 'Which handles', { handle: '21.T11998/page' }),
  responses: {
    200: json('Done; `shared` false: other instances are told when Redis is back', {
      type: 'object',
      required: ['purged', 'soft', 'shared'],
      properties: { purged: { type: 'object' }, soft: { type: 'boolean' }, shared: { type: 'boolean' } },
    }),
    ...ofBodies,
    ...refusals,
  },
  security,
};

const logLevel: Operation = {
  operationId: 'setLogLevel',
  tags: ['Admin'],
  summary: 'Write more, or less, into the log',
  requestBody: body('LogLevel', 'Until the next start', { level: 'debug' }),
  responses: { 200: json('Done', ref('LogLevel')), ...ofBodies, ...refusals },
  security,
};

export function adminPaths({ host, port }: { host: string; port: number }): Paths {
  const name = host.includes(':') ? `[${host}]` : host;
  const servers = [{ url: `http://${name}:${port}`, description: 'The admin listener' }];
  const paths: Paths = {
    '/healthz': get('health', 'Does the process live?', {
      200: json('It does', { type: 'object', properties: { status: { const: 'ok' } } }),
    }),
    '/readyz': get('readiness', 'Should requests come here?', {
      200: json('Yes', readiness),
      503: json('No, because of these parts', readiness),
    }),
    '/metrics': get('metrics', 'What Prometheus reads', {
      200: { description: 'Text exposition format 0.0.4', ...content('text/plain', text) },
    }),
    '/': get('statusPage', 'The status page, for a browser', {
      200: { description: 'The page; it holds no figures itself', ...content('text/html', text) },
    }),
    '/events': get('events', 'The state of the moment once a second, as server-sent events', {
      200: {
        description: 'Messages whose data is what `/stats` answers',
        ...content('text/event-stream', text),
      },
      ...failures(['ADMIN_BUSY'], problem),
    }),
    '/stats': get('stats', 'The state of the moment', { 200: json('Statistics', { type: 'object' }) }),
    '/cache': { get: look },
    '/purge': { post: purge },
    '/log-level': { put: logLevel },
  };
  return Object.fromEntries(Object.entries(paths).map(([path, item]) => [path, { servers, ...item }]));
}
