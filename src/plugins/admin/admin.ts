// Creates the admin listener: who may use it, probes, metrics, status page, API and call log.
import { createHash, timingSafeEqual } from 'node:crypto';
import type { RequestListener, ServerResponse } from 'node:http';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { z } from 'zod';
import type { Host, Operations, PurgeRequest } from '../../host.js';
import type { AdminHandlers, AdminInterfaces, Started } from '../../plugin.js';
import { isLoopback } from '../../config/addresses.js';
import { LOG_LEVELS } from '../../config/schema-server.js';
import type { Context } from '../../context.js';
import { ServiceError } from '../../errors.js';
import { MAX_HANDLE_BYTES } from '../../handle/handle.js';
import type { JsonLimits } from '../../handle/json.js';
import type { Hooks } from '../../hooks.js';
import {
  completeReply,
  createReportUnexpected,
  createSendError,
  errorHeaders,
  type ErrorReply,
  type FailingListener,
  guard,
  problemOf,
} from '../../http/error-reply.js';
import { NOSNIFF } from '../../http/raw-response.js';
import { FIRST_ISSUE, createMemoryBudget, createWithBody, parseJsonBytes } from '../../http/request-body.js';
import { routedMethod } from '../../http/route-table.js';
import { addRoutes, callOf, errorHandler } from '../../http/router.js';
import { readTarget, routableTarget } from '../../http/target.js';
import { createHistory } from './history.js';
import { type AdminId, ERRORS, isProbe } from './plugin.js';
import { createEventStream, createStatusFiles, statusIcon, statusPage } from './status/page.js';

export const start = (host: Host): Started => ({ admin: (interfaces) => createAdmin(host, interfaces) });

export function createAdmin(host: Host, interfaces: AdminInterfaces): RequestListener {
  const onUnexpected = createReportUnexpected(host, 'unexpected error on the admin listener');
  const handlers = { ...handlersOf(interfaces), ...createHandlers(host, onUnexpected) };
  const routes = interfaces.plugins.flatMap(({ adminRoutes = [] }) => adminRoutes);
  const assertAccess = createAccessCheck(host.settings.current.admin.token);
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(createCallLog(host)); // Precedes the access check, so that rejected calls are logged.
  addRoutes<RequestHandler>(
    app,
    routes,
    handlers,
    (handler = answerUnroutedCall, match, route) =>
      function handleCall(req, res, next) {
        Object.assign(res.locals, { match, route });
        res.set({ 'Cache-Control': 'no-store', ...NOSNIFF });
        if (route === undefined || !isProbe(route)) assertAccess(req, res);
        return handler(req, res, next);
      },
  );
  app.use(errorHandler(createSendError(onUnexpected, renderAdminProblem, sendAdminProblem)));
  const listener: FailingListener = (req, res, fail) => {
    const target = readTarget(req.url ?? '');
    req.url = routableTarget(target);
    app(req as Request, Object.assign(res, { locals: { target } }) as unknown as Response, fail);
  };
  return guard({ listener }, onUnexpected);
}

/** Returns the handlers of the routes of plugins; those of a plugin that is off fail with its error. */
function handlersOf({ plugins, adminHandlers }: AdminInterfaces): AdminHandlers {
  const whileOff = plugins.flatMap(({ adminRoutes = [], offError }) =>
    adminRoutes.map(({ handler }): [string, RequestHandler] => [
      handler,
      () => {
        throw offError?.() ?? new ServiceError('UNKNOWN_ENDPOINT');
      },
    ]),
  );
  return { ...Object.fromEntries(whileOff), ...adminHandlers };
}

/** Sends an error without `Vary`, because nothing on this listener is cached. */
function sendAdminProblem(_req: unknown, res: ServerResponse, reply: ErrorReply): Promise<void> {
  const { status, headers, body } = completeReply(reply);
  res.writeHead(status, headers).end(body);
  return Promise.resolve();
}

function renderAdminProblem(failure: ServiceError): ErrorReply {
  const isUnexpected = failure.code === 'INTERNAL';
  const problem = problemOf(isUnexpected ? new ServiceError('INTERNAL', { detail: 'see the log' }) : failure);
  return {
    status: problem.status,
    headers: errorHeaders(failure),
    contentType: 'application/problem+json; charset=utf-8',
    text: JSON.stringify(problem),
  };
}

function createHandlers(
  { metrics, hooks, readiness, blockedMs, operations }: Host,
  onUnexpected: (error: unknown) => void,
): Record<AdminId, RequestHandler> {
  return {
    health(_req, res) {
      const blocked = blockedMs();
      if (blocked === undefined) res.json({ status: 'ok' });
      else res.status(503).json({ status: 'blocked', blockedMs: Math.round(blocked) });
    },
    readiness(_req, res) {
      const { ready, notReady } = readiness.report();
      res.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'not ready', notReady });
    },
    async metrics(_req, res) {
      res.type(metrics.contentType).send(await metrics.exposition());
    },
    statusPage,
    statusIcon,
    statusFile: createStatusFiles(),
    events: createEventStream(createStatusReader(operations, hooks), onUnexpected),
    ...createApi(operations),
  };
}

function answerUnroutedCall(req: Request, res: Response): void {
  const { match } = callOf(res);
  const method = routedMethod(req);
  if (match === undefined)
    throw new ServiceError('UNKNOWN_ENDPOINT', { detail: `${method} ${req.path} is not served here` });
  if (method !== 'OPTIONS')
    throw new ServiceError('METHOD_NOT_ALLOWED', { detail: method, allow: match.allow });
  res.set('Allow', match.allow.join(', ')).status(204).end();
}

/** Collects the status page's data: statistics since startup and for the last minute, and those of plugins. */
function createStatusReader(operations: Operations, { status }: Hooks): () => Promise<object> {
  const addToHistory = createHistory(() => performance.now());
  return async function readStatus() {
    const stats = await operations.stats();
    return Object.assign({ ...stats, ...addToHistory(stats) }, ...status.map((read) => read())) as object;
  };
}

/** Logs calls without headers and query, which may have credentials; routine ones at `debug`. */
function createCallLog({ log }: Context): RequestHandler {
  return function callLog(req: Request, res: Response, next: NextFunction): void {
    const startedAt = performance.now();
    const { method, path } = req;
    res.once('close', () => {
      const { route, details = handleInQuery(req), failure } = callOf(res);
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
      const isRepeated = method === 'GET' && route?.isRoutine === true && res.statusCode < 400;
      const call = {
        method,
        path,
        details,
        from: req.socket.remoteAddress,
        status: res.statusCode,
        code: failure?.code,
        ms,
      };
      log[isRepeated ? 'debug' : 'info'](call, 'admin call');
    });
    next();
  };
}

const handleInQuery = ({ query: { handle } }: Request): unknown =>
  typeof handle === 'string' ? { handle } : undefined;

/** Creates the access check. If no token is configured, it allows only requests to a loopback host. */
function createAccessCheck(token: string | undefined): (req: Request, res: Response) => void {
  const isExpected = token === undefined ? undefined : secretEquals(token);
  const remedy = token === undefined ? '; set admin.token to use it under a name that is not loopback' : '';
  return function assertAccess(req, res) {
    if (isCrossOrigin(req, isExpected === undefined ? isLoopback : () => true)) {
      throw new ServiceError(ERRORS.ADMIN_CROSS_ORIGIN, {
        detail: `the Origin or Host does not match the admin listener${remedy}`,
      });
    }
    if (isExpected === undefined || isExpected(givenToken(req))) return;
    // Sends one header per scheme, because browsers ignore a header that starts with an unknown scheme.
    res.set('WWW-Authenticate', ['Basic realm="admin"', 'Bearer realm="admin"']);
    throw new ServiceError(ERRORS.ADMIN_TOKEN_NEEDED, {
      detail: 'send "Authorization: Bearer <admin.token>"',
    });
  };
}

/**
 * Detects requests from other sites' pages in a local browser, which could otherwise post here, or even read
 * responses through a host name that resolves to 127.0.0.1 (DNS rebinding).
 */
function isCrossOrigin({ headers }: Request, isAllowedHost: (host: string) => boolean): boolean {
  const { host = '', origin } = headers;
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
  if (url === undefined || !isAllowedHost(url.hostname)) return true;
  if (headers['sec-fetch-site'] === 'cross-site') return true;
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === url.host);
}

/** Returns the Bearer token or the Basic password; browsers can prompt only for Basic. */
function givenToken({ headers: { authorization = '' } }: Request): string {
  const [, scheme = '', given = ''] = /^(bearer|basic) +(\S+) *$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() !== 'basic') return given;
  return Buffer.from(given, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:/, '');
}

/** Compares digests, which have equal lengths, in constant time. */
function secretEquals(secret: string): (given: string) => boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = digest(secret);
  return (given) => timingSafeEqual(digest(given), expected);
}

/** Maximum body size, enough for 10,000 handles of typical length. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_TOTAL_BYTES = 4 * MAX_BODY_BYTES;
const MAX_LOGGED_HANDLES = 5;

type ApiHandler = 'stats' | 'inspectCache' | 'purge' | 'setLogLevel';

function parseBody<T extends z.ZodType>(body: Buffer, schema: T): z.output<T> {
  const parsed = schema.safeParse(parseJsonBytes(body, BODY_LIMITS, BODY_CODES), FIRST_ISSUE);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ServiceError(ERRORS.ADMIN_BAD_BODY, { detail: issue?.message ?? 'invalid' });
}

function createApi(operations: Operations): Record<ApiHandler, RequestHandler> {
  const withBody = createWithBody(createMemoryBudget(MAX_TOTAL_BYTES), MAX_BODY_BYTES);
  /** Accepts any Content-Type, because `curl -d` declares a form. */
  const readJson = <T extends z.ZodType>(req: Request, schema: T): Promise<z.output<T>> =>
    withBody(req, (body) => parseBody(body, schema), BODY_CODES);
  return {
    async stats(_req, res) {
      res.json(await operations.stats());
    },
    async inspectCache(req, res) {
      const { handle } = req.query;
      if (typeof handle !== 'string' || handle === '')
        throw new ServiceError('BAD_PARAMETER', { detail: 'give ?handle=…' });
      const copies = await operations.inspect(handle);
      res.json({ handle, cached: copies.length > 0, copies });
    },
    async purge(req, res) {
      const request = purgeRequestOf(await readJson(req, purgeBody));
      const purged = summaryOf(request);
      Object.assign(res.locals, { details: purged });
      const { isShared } = await operations.purge(request);
      res.json({ purged, soft: request.isSoft, shared: isShared });
    },
    async setLogLevel(req, res) {
      const body = await readJson(req, logLevelBody);
      Object.assign(res.locals, { details: body });
      operations.setLogLevel(body.level);
      res.json(body);
    },
  };
}

function purgeRequestOf({ soft: isSoft = false, ...target }: z.output<typeof purgeBody>): PurgeRequest {
  if ('handle' in target) return { isSoft, handles: [target.handle] };
  if ('handles' in target) return { isSoft, handles: target.handles };
  return { isSoft, prefix: 'prefix' in target ? target.prefix : '' };
}

function summaryOf(request: PurgeRequest): object {
  if ('prefix' in request) return request.prefix === '' ? { all: true } : { prefix: request.prefix };
  const { handles } = request;
  return { count: handles.length, handles: handles.slice(0, MAX_LOGGED_HANDLES) };
}

/** Maximum handles per purge; more would block the event loop. */
const MAX_HANDLES = 10_000;

/** Limits of every request body: the handles of a purge, and the body itself. */
const BODY_LIMITS: JsonLimits = { elements: MAX_HANDLES, values: MAX_HANDLES + 10 };

const BODY_CODES = { invalid: ERRORS.ADMIN_BAD_BODY, encoding: ERRORS.ADMIN_BAD_BODY };

const prefix = z
  .string()
  .min(1)
  .refine((text) => Buffer.byteLength(text) <= MAX_HANDLE_BYTES && !text.includes('\0'), 'not a handle');
const handle = prefix.refine((text) => text.includes('/'), 'not a handle');
const soft = z.boolean().optional();

export const purgeBody = z.union(
  [
    z.strictObject({ handle, soft }),
    z.strictObject({ handles: z.array(handle).min(1).max(MAX_HANDLES), soft }),
    z.strictObject({ prefix, soft }),
    z.strictObject({ all: z.literal(true), soft }),
  ],
  {
    error: `give {"handle": "…"}, {"handles": ["…"]} with at most ${MAX_HANDLES}, {"prefix": "…"} or {"all": true}, and "soft": true or false`,
  },
);

export const logLevelBody = z.strictObject(
  { level: z.enum(LOG_LEVELS) },
  { error: `give {"level": "…"} with one of ${LOG_LEVELS.join(', ')}` },
);
