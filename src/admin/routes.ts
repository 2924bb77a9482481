// Defines the admin listener's routes.
import { openApiRoutes } from '../openapi/serve.js';
import { z } from 'zod';
import { ADMIN_GROUP, anyObject, json, pathText } from '../http/schemas.js';
import type { Plugin } from '../app/plugin.js';
import { type Route, defineRoutes } from '../http/route-table.js';
import { cacheCopies, logLevelBody, purgeBody } from './schemas.js';

/** Calls that monitoring and the status page repeat; the call log records them at `debug`. */
const ROUTINE: ReadonlySet<string> = new Set([
  'health',
  'readiness',
  'metrics',
  'statusPage',
  'statusFile',
  'events',
  'stats',
] satisfies AdminId[]);

export const isRoutine = ({ id, isRoutine: isMarked = false }: Route): boolean => isMarked || ROUTINE.has(id);

const text = z.string();
const ofType = (description: string, type: string) => ({ description, content: { [type]: text } });

const readiness = z.object({ status: z.enum(['ready', 'not ready']), notReady: z.array(text) });

const probeRoutes = defineRoutes(
  { ...ADMIN_GROUP, errors: ['METHOD_NOT_ALLOWED'], security: ['none'] },
  {
    'GET /healthz': {
      id: 'health',
      summary: 'Check liveness',
      responses: {
        200: json('The process is alive', z.object({ status: z.literal('ok').optional() })),
        503: json(
          'The event loop was blocked for longer than `admin.maxEventLoopDelay` within the last 10 s',
          z.object({ status: z.literal('blocked').optional(), blockedMs: z.int().optional() }),
        ),
      },
    },
    'GET /readyz': {
      id: 'readiness',
      summary: 'Check readiness',
      responses: {
        200: json('The instance is ready', readiness),
        503: json('The instance is not ready; `notReady` lists the failed checks', readiness),
      },
    },
  },
);

const PROBES: ReadonlySet<string> = new Set(probeRoutes.map(({ id }) => id));

/** Whether the route needs no token; orchestrator probes cannot send one. */
export const isProbe = ({ id }: Route): boolean => PROBES.has(id);

const operatorRoutes = defineRoutes(
  {
    ...ADMIN_GROUP,
    parameters: z.object({
      file: pathText('Name of the file.', 'main.js'),
    }),
  },
  {
    'GET /metrics': {
      id: 'metrics',
      summary: 'Read the metrics for Prometheus',
      responses: { 200: ofType('The metrics in text exposition format 0.0.4', 'text/plain') },
    },
    'GET /': {
      id: 'statusPage',
      summary: 'Show the status page',
      responses: { 200: ofType('The page, which loads its figures from `/events`', 'text/html') },
    },
    'GET /status/{file}': {
      id: 'statusFile',
      summary: 'Read a script or the style sheet of the status page',
      responses: { 200: { description: 'The file', content: { 'text/javascript': text, 'text/css': text } } },
      errors: ['UNKNOWN_ENDPOINT'],
    },
    'GET /events': {
      id: 'events',
      summary: 'Stream the statistics once a second as server-sent events',
      responses: {
        200: ofType(
          'Messages whose data is the response of `/stats`, with the figures of the last minute and the top rows of `/traffic`',
          'text/event-stream',
        ),
      },
      errors: ['ADMIN_BUSY'],
    },
    'GET /stats': {
      id: 'stats',
      summary: 'Read the statistics of this instance',
      responses: {
        200: json('Counts since the start, and top lists of the last five to ten minutes', anyObject),
      },
    },
    'GET /cache': {
      id: 'inspectCache',
      summary: 'Read the cache entries of a handle',
      query: z.object({ handle: text.meta({ description: 'The handle.', example: '21.T1/a' }) }),
      responses: { 200: json('The entries in memory and in Redis', cacheCopies) },
      errors: ['BAD_PARAMETER'],
    },
    'POST /purge': {
      id: 'purge',
      summary: 'Invalidate handles on all instances',
      description:
        'With `soft`, the entries become stale: they are served only while the Handle server fails or is slow. `prefix` is the beginning of the handles as plain text: `21.T1` includes `21.T11998/…`, so end it with a slash.',
      body: {
        description: 'The handles to invalidate',
        content: { 'application/json': purgeBody },
        example: { handle: '21.T11998/page' },
      },
      responses: {
        200: json(
          'The handles were invalidated. `shared` is false while Redis is unavailable: other instances follow when it is back',
          z.object({ purged: anyObject, soft: z.boolean(), shared: z.boolean() }),
        ),
      },
      errors: ['ADMIN_BAD_BODY', 'BODY_TOO_LARGE', 'INVALIDATION_UNCONFIRMED'],
    },
    'PUT /log-level': {
      id: 'setLogLevel',
      summary: 'Set the log level',
      body: {
        description: 'The log level, until the next start or a reload that changes `log.level`',
        content: { 'application/json': logLevelBody },
        example: { level: 'debug' },
      },
      responses: { 200: json('The new log level', logLevelBody) },
      errors: ['ADMIN_BAD_BODY', 'BODY_TOO_LARGE'],
    },
  },
);

const adminRoutes = [...probeRoutes, ...operatorRoutes];

/** The list of each list of plugins, because the OpenAPI document is written once per list of routes. */
const lists = new WeakMap<readonly Plugin[], readonly Route[]>();

/** Returns the routes of the admin listener, with those of plugins. */
export function routesOfAdmin(plugins: readonly Plugin[]): readonly Route[] {
  const ofPlugins = plugins.flatMap(({ adminRoutes: ofPlugin = [] }) => ofPlugin);
  const routes = lists.get(plugins) ?? [...adminRoutes, ...ofPlugins, ...openApiRoutes(ADMIN_GROUP)];
  lists.set(plugins, routes);
  return routes;
}

export type AdminId = (typeof adminRoutes)[number]['id'];
