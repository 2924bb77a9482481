// Handles requests outside the read path: starts each request, then calls its route handler, in Express if
// needed.
import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import {
  type RequestContext,
  type AcceptRequestId,
  contextOf,
  hasContext,
  putContext,
} from '../http/context.js';
import { allowOrigin, answerOptions } from '../http/cors.js';
import { type SendError, createReportUnexpected, createSendError } from '../http/error-reply.js';
import { expressListener, toErrorHandler } from '../http/express-listener.js';
import { type FailingListener, type Listener, guard } from '../http/guard.js';
import type { ScanHeaders } from '../http/fast-headers.js';
import { readFormat, readParameters } from '../http/query.js';
import { forbidSniffing } from '../http/raw-response.js';
import type { RequestCheck } from '../http/request-check.js';
import type { RequestLog } from '../http/request-log.js';
import { type Place, type Route, type RouteTable, routeFor } from '../http/route-table.js';
import { type Owner, assertPlain, ownerOf, rawHandleOf } from '../http/target.js';
import type { IsTrustedProxy } from '../server/client-address.js';
import type { Admit } from '../upstream/caller.js';

/** Handlers by their name in the routes. */
type Handlers<Handler> = Readonly<Record<string, Handler | undefined>>;

interface PipelineParts {
  table: RouteTable;
  check: RequestCheck;
  scanHeaders: ScanHeaders;
  /** Judges a request, and returns its caller. */
  admit: Admit;
  requestLog: RequestLog;
  acceptRequestId: AcceptRequestId;
  /** Handlers for Node's request and response, because entering Express costs more than a redirect. */
  plainHandlers: Handlers<Listener>;
  /** Handlers for Express requests and responses. */
  handlers: Handlers<RequestHandler>;
  /** Handlers of interfaces that have their own OPTIONS, 404 and 405 responses. */
  fallbacks: { [owner in Owner]?: RequestHandler };
  /** Error replies by interface; defaults to the record interface. */
  errorReplies: { [owner in Owner]?: SendError };
  isTrustedProxy: IsTrustedProxy;
}

/** Handles a request at its place in the route table. */
type Pipeline = (req: IncomingMessage, res: ServerResponse, place: Place) => Promise<void>;

export function createPipeline(
  { http }: { http: Pick<Config['http'], 'jsonpWithCredentials'> },
  context: Context,
  parts: PipelineParts,
): Pipeline {
  parts.table.assertHandled({ ...parts.handlers, ...parts.plainHandlers });
  const onUnexpected = createReportUnexpected(context);
  const sendRecordError = createSendError({ onUnexpected });
  const sendError: SendError = (req, res, error) => {
    const reply = parts.errorReplies[ownerOf(contextOf(res).target.path)] ?? sendRecordError;
    return reply(req, res, error);
  };
  const startRequest = createStartRequest({ ...parts, ...http });
  // Express needs a separate guard, because it passes errors to its third argument.
  const dispatch = createDispatch(parts, guard(createExpress(parts, sendError), onUnexpected));
  return async function answer(req, res, place) {
    try {
      await startRequest(req, res, place);
      await dispatch(req, res);
    } catch (error) {
      // The guard sends the response if the request has no context.
      if (!hasContext(res)) throw error;
      await sendError(req, res, error);
    }
  };
}

type StartParts = Pick<
  PipelineParts,
  'check' | 'scanHeaders' | 'admit' | 'requestLog' | 'acceptRequestId'
> & {
  /** Whether JSONP is allowed with credentials. */
  jsonpWithCredentials: boolean;
};

/**
 * Sets the context synchronously, then applies log, CORS, checks and admission, in this order, so that a
 * rejection is logged and readable by scripts. Rejects with the error of the check or judge.
 */
function createStartRequest(parts: StartParts): Pipeline {
  const { check, scanHeaders, jsonpWithCredentials, admit, requestLog, acceptRequestId } = parts;
  return async function startRequest(req, res, { target, match }) {
    const route = match && routeFor(match, req, target);
    const headers = scanHeaders(req.rawHeaders);
    const context: RequestContext = {
      target,
      match,
      route,
      family: route?.family ?? ownerOf(target.path),
      format: readFormat(readParameters(target.query)),
      result: 'local',
      requestId: acceptRequestId(headers.requestId, req),
    };
    putContext(res, context);
    requestLog(req, res);
    allowOrigin(req, res);
    const refusal = check(req, req.url ?? '', headers);
    if (refusal) throw refusal;
    if (headers.hasCredentials && !jsonpWithCredentials) refuseScript(req, context);
    assertKnownMethod(req);
    const admitting = admit(req, res);
    context.caller = admitting instanceof Promise ? await admitting : admitting;
  };
}

const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']);

function assertKnownMethod({ method = '' }: IncomingMessage): void {
  if (KNOWN_METHODS.has(method)) return;
  throw new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${method}` });
}

/**
 * Rejects JSONP with credentials: any page may load the script, and the browser adds stored credentials.
 * Scripts are loaded with GET; ePIC v2 has no JSONP.
 *
 * @throws ServiceError JSONP_WITH_LOGIN, sent as JSON
 */
function refuseScript({ method }: IncomingMessage, context: RequestContext): void {
  const { family, format } = context;
  if (format.callback === undefined || family === 'v2' || (method !== 'GET' && method !== 'HEAD')) return;
  context.format = { pretty: format.pretty };
  throw new ServiceError('JSONP_WITH_LOGIN', { detail: 'leave out callback or the login' });
}

function createDispatch(
  { plainHandlers, fallbacks }: Pick<PipelineParts, 'plainHandlers' | 'fallbacks'>,
  enterExpress: Listener,
): Listener {
  return function dispatch(req, res) {
    const { target, route } = contextOf(res);
    const plain = route && plainHandlers[route.handler];
    if (plain !== undefined) return plain(req, res);
    forbidSniffing(res);
    if (route !== undefined || fallbacks[ownerOf(target.path)] !== undefined) return enterExpress(req, res);
    answerUnrouted(req, res, contextOf(res));
    return undefined;
  };
}

/**
 * Responds to requests without a route. OPTIONS gets 200 for any path, as on HDLProxy.
 *
 * @throws ServiceError UNKNOWN_ENDPOINT, BAD_PATH, METHOD_NOT_ALLOWED (recordings "unknown: GET /api/foo",
 * "path: server: …")
 */
function answerUnrouted(req: IncomingMessage, res: ServerResponse, { target: { path }, match }: Place): void {
  const { method = '' } = req;
  if (method === 'OPTIONS') {
    answerOptions(req, res, match?.allow ?? ['OPTIONS']);
    return;
  }
  if (match === undefined || isConditional(match.routes)) {
    throw new ServiceError('UNKNOWN_ENDPOINT', { message: `Unknown HTTP API endpoint ${method} ${path}` });
  }
  // An ambiguous path is rejected, as for relayed methods, because a server could read it as a different
  // path.
  if (isRelayed(path)) assertPlain(path);
  // A 405 must list the allowed methods (RFC 9110 §15.5.6).
  throw new ServiceError('METHOD_NOT_ALLOWED', { detail: method, allow: match.allow });
}

/** Whether the path belongs to the record interface, but names no handle. */
const isRelayed = (path: string): boolean => ownerOf(path) === 'record' && rawHandleOf(path) === undefined;

/** Whether all routes have a condition; without an unconditional route the path does not exist. */
const isConditional = (routes: readonly Route[]): boolean => routes.every(({ when }) => when !== undefined);

function createExpress(
  { handlers, fallbacks, isTrustedProxy }: Pick<PipelineParts, 'handlers' | 'fallbacks' | 'isTrustedProxy'>,
  sendError: SendError,
): FailingListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', isTrustedProxy);
  app.use((req: Request, res: Response, next: NextFunction): unknown => {
    const { target, route } = contextOf(res);
    const handler = route === undefined ? fallbacks[ownerOf(target.path)] : handlers[route.handler];
    return handler?.(req, res, next);
  });
  app.use(toErrorHandler(sendError));
  return expressListener(app);
}
