// Defines the admin listener's routes.
import { openApiRoutes } from '../openapi/serve.js';
import { z } from 'zod';
import { PROBLEM, anyObject, json, pathText } from '../http/schemas.js';
import { type Route, type Security, defineRoutes } from '../http/route-table.js';
import {
  cacheCopies,
  logLevelBody,
  purgeBody,
  reportQuery,
  resolutionReport,
  trafficReport,
} from './schemas.js';

const ADMIN_GROUP = {
  tag: { name: 'Admin', description: 'For the operator.' },
  errors: ['ADMIN_TOKEN_NEEDED', 'ADMIN_CROSS_ORIGIN', 'METHOD_NOT_ALLOWED'],
  errorContent: PROBLEM,
  security: ['none', 'adminToken'] satisfies Security[],
} as const;

/** Calls that monitoring and the status page repeat; the call log records them at `debug`. */
const ROUTINE: ReadonlySet<string> = new Set([
  'health',
  'readiness',
  'metrics',
  'statusPage',
  'statusFile',
  'events',
  'stats',
  'changes',
] satisfies AdminId[]);

export const isRoutine = ({ id }: Route): boolean => ROUTINE.has(id);

const text = z.string();
const ofType = (description: string, type: string) => ({ description, content: { [type]: text } });

const readiness = z.object({ status: z.enum(['ready', 'not ready']), notReady: z.array(text) });

const prefix = z.string().meta({ description: 'The prefix, without a slash.', example: '21.T11998' });

const probeRoutes = defineRoutes(
  { ...ADMIN_GROUP, errors: ['METHOD_NOT_ALLOWED'], security: ['none'] },
  {
    'GET /healthz': {
      id: 'health',
      summary: 'Liveness',
      responses: {
        200: json('The process runs', z.object({ status: z.literal('ok').optional() })),
        503: json(
          'The event loop has stood still for longer than `admin.maxEventLoopDelay` within the last 10 s',
          z.object({ status: z.literal('blocked').optional(), blockedMs: z.int().optional() }),
        ),
      },
    },
    'GET /readyz': {
      id: 'readiness',
      summary: 'Readiness',
      responses: {
        200: json('Ready', readiness),
        503: json('Not ready, because of these parts', readiness),
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
      network: pathText('The network as `GET /traffic` lists it, or an address in it.', '192.0.2.0/24'),
      file: pathText('The name of the file.', 'main.js'),
    }),
  },
  {
    'GET /metrics': {
      id: 'metrics',
      summary: 'Metrics for Prometheus',
      responses: { 200: ofType('Text exposition format 0.0.4', 'text/plain') },
    },
    'GET /': {
      id: 'statusPage',
      summary: 'The status page',
      responses: { 200: ofType('The page, without figures', 'text/html') },
    },
    'GET /status/{file}': {
      id: 'statusFile',
      summary: 'A script or the style sheet of the status page',
      responses: { 200: { description: 'The file', content: { 'text/javascript': text, 'text/css': text } } },
      errors: ['UNKNOWN_ENDPOINT'],
    },
    'GET /events': {
      id: 'events',
      summary: 'The statistics once a second, as server-sent events',
      responses: {
        200: ofType(
          'Messages with the response of `/stats` as data, and with limited networks',
          'text/event-stream',
        ),
      },
      errors: ['ADMIN_BUSY'],
    },
    'GET /changes': {
      id: 'changes',
      summary: 'Writes and purges as server-sent events, if `changes.enabled`',
      description:
        'With `Last-Event-ID` from there on (`0-0`: from the oldest that is kept), otherwise from now on. An event `gap` stands for changes that are missing.',
      responses: {
        200: ofType('Messages with a change as data, each with its id', 'text/event-stream'),
      },
      errors: ['UNKNOWN_ENDPOINT', 'BAD_REQUEST', 'ADMIN_BUSY'],
    },
    'GET /stats': {
      id: 'stats',
      summary: 'The statistics',
      responses: { 200: json('Statistics', anyObject) },
    },
    'GET /traffic': {
      id: 'traffic',
      summary: 'Traffic rules, the clients with the most misses, and limited networks',
      responses: {
        200: json(
          'The counts of rules since the start, of clients in the last five to ten minutes',
          trafficReport,
        ),
      },
    },
    'DELETE /traffic/blocked/{network}': {
      id: 'unblockNetwork',
      summary: 'End the limit of a network, in all instances',
      responses: { 204: 'Done; other instances follow within two seconds' },
      errors: ['ADMIN_NOT_BLOCKED', 'INVALIDATION_UNCONFIRMED'],
    },
    'GET /cache': {
      id: 'inspectCache',
      summary: 'The cache entries of a handle',
      query: z.object({ handle: text.meta({ description: 'The handle.', example: '21.T1/a' }) }),
      responses: { 200: json('Every entry', cacheCopies) },
      errors: ['BAD_PARAMETER'],
    },
    'POST /purge': {
      id: 'purge',
      summary: 'Invalidate handles on all instances',
      description: 'With `soft` the entries become stale: served only while the Handle server fails.',
      body: {
        description: 'Which handles',
        content: { 'application/json': purgeBody },
        example: { handle: '21.T11998/page' },
      },
      responses: {
        200: json(
          'Done; `shared` false: other instances are invalidated when Redis is back',
          z.object({ purged: anyObject, soft: z.boolean(), shared: z.boolean() }),
        ),
      },
      errors: ['ADMIN_BAD_BODY', 'BODY_TOO_LARGE', 'INVALIDATION_UNCONFIRMED'],
    },
    'GET /export': {
      id: 'exportRecords',
      summary: 'The records of a prefix in memory, one JSON object per line',
      query: z.object({ prefix }),
      responses: {
        200: ofType(
          'Records with their times. The trailer `Export-Not-Found` counts the handles in memory that do not exist.',
          'application/x-ndjson',
        ),
      },
      errors: ['BAD_PARAMETER'],
    },
    'GET /reports': {
      id: 'report',
      summary: 'The resolutions of a prefix in a month',
      query: reportQuery,
      responses: { 200: json('The sum of all instances, up to a minute old', resolutionReport) },
      errors: ['BAD_PARAMETER', 'REPORTS_DISABLED', 'REPORT_UNAVAILABLE'],
    },
    'POST /import': {
      id: 'importRecords',
      summary: 'Put exported records into memory',
      description: 'They are stale: served only while the Handle server fails, or where there is none.',
      body: {
        description: 'Up to 4 MiB of lines of an export',
        content: { 'application/x-ndjson': text },
      },
      responses: {
        200: json(
          'How many lines are in memory now; were skipped because memory has them already or they have changed, because they are too old, or because memory is full; and are no records',
          z.object({
            restored: z.int(),
            kept: z.int(),
            expired: z.int(),
            full: z.int(),
            rejected: z.int(),
          }),
        ),
      },
      errors: ['BODY_TOO_LARGE'],
    },
    'PUT /log-level': {
      id: 'setLogLevel',
      summary: 'Set the log level',
      body: {
        description: 'Until the next start',
        content: { 'application/json': logLevelBody },
        example: { level: 'debug' },
      },
      responses: { 200: json('Done', logLevelBody) },
      errors: ['ADMIN_BAD_BODY', 'BODY_TOO_LARGE'],
    },
  },
);

const adminRoutes = [...probeRoutes, ...operatorRoutes];

export const routesOfAdmin: readonly Route[] = [...adminRoutes, ...openApiRoutes(ADMIN_GROUP)];

export type AdminId = (typeof adminRoutes)[number]['id'];
