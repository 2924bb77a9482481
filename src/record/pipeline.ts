// The Express pipeline: the middleware and routes of a request, in the order in which they must run.
import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { contextOf, hasContext, putContext } from '../http/context.js';
import { answerOptions, cors } from '../http/cors.js';
import { type ReportUnexpected, createErrorReply } from '../http/error-reply.js';
import { expressListener } from '../http/express-listener.js';
import type { ScanHeaders } from '../http/fast-headers.js';
import type { FailingListener } from '../http/guard.js';
import { readFormat, readParameters } from '../http/query.js';
import { type AcceptRequestId, REQUEST_ID } from '../http/request-id.js';
import type { RequestLog } from '../http/request-log.js';
import { type Route, type RouteTable, routeFor } from '../http/route-table.js';
import { type Owner, ownerOf, rawHandleOf, readTarget } from '../http/target.js';
import type { Admit } from '../upstream/caller.js';
import {
  type RequestCheck,
  assertPlain,
  createRequestChecks,
  methodRefused,
  unknownEndpoint,
} from './request-checks.js';

export interface PipelineDeps {
  table: RouteTable;
  /** By the name that the routes give them. */
  handlers: Readonly<Record<string, RequestHandler | undefined>>;
  /** An interface that has OPTIONS, 404 and 405 of its own. */
  fallbacks: { [owner in Owner]?: RequestHandler };
  /** Errors in the form of an interface; others are as those of the record interface. */
  errorReplies: { [owner in Owner]?: ErrorRequestHandler };
  check: RequestCheck;
  scanHeaders: ScanHeaders;
  /** Whether a script gets what a login may read. */
  jsonpWithCredentials: boolean;
  /** Judges a request by the traffic rules. */
  admit: Admit;
  requestLog: RequestLog;
  acceptRequestId: AcceptRequestId;
  onUnexpected: ReportUnexpected;
  /** Trusted proxies, in the syntax of Express. */
  trustedProxies: readonly string[];
}

export function createPipeline(deps: PipelineDeps): FailingListener {
  return expressListener(createApp(deps));
}

function createApp(deps: PipelineDeps): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', deps.trustedProxies);
  app.use(createBeginning(deps)); // everything below reads target and route from here
  app.use(cors); // errors carry the CORS headers too
  app.use(createRequestChecks(deps)); // before any route
  app.use(createAdmission(deps.admit));
  app.use(createDispatch(deps));
  app.use(createInterfaceErrorReply(deps));
  app.use(createErrorReply(deps)); // the one place for failures, so the last
  return app;
}

const FAMILIES = {
  record: 'record',
  list: 'record',
  batch: 'record',
  v2: 'v2',
  redirect: 'redirect',
  native: 'native-tunnel',
} as const;

/** Sets the context, and logs each request. */
function createBeginning({
  table,
  requestLog,
  acceptRequestId,
}: Pick<PipelineDeps, 'table' | 'requestLog' | 'acceptRequestId'>): RequestHandler {
  return function begin(req: Request, res: Response, next: NextFunction): void {
    const target = readTarget(req.url);
    const match = table.at(target.path);
    const route = match && routeFor(match, req, target);
    const family = FAMILIES[route?.interface ?? ownerOf(target.path)];
    const format = readFormat(readParameters(target.query));
    const requestId = acceptRequestId(req.get(REQUEST_ID), req);
    putContext(res, { family, target, match, route, format, result: 'local', requestId });
    requestLog(req, res);
    next();
  };
}

/** Recordings "unknown: GET /api/foo" and "path: server: …". */
function createDispatch({
  table,
  handlers,
  fallbacks,
}: Pick<PipelineDeps, 'table' | 'handlers' | 'fallbacks'>): RequestHandler {
  table.assertHandled(handlers);
  return function dispatch(req: Request, res: Response, next: NextFunction): unknown {
    const { target, match, route } = contextOf(res);
    const fallback = fallbacks[ownerOf(target.path)];
    if (route !== undefined) return handlers[route.handler]?.(req, res, next);
    if (fallback !== undefined) return fallback(req, res, next);
    // On HDLProxy OPTIONS of an unknown path is 200 too.
    if (req.method === 'OPTIONS') {
      answerOptions(req, res, match?.allow ?? ['OPTIONS']);
      return undefined;
    }
    if (match === undefined || isConditional(match.routes)) throw unknownEndpoint(req.method, target.path);
    // As for a method that is relayed: what a server could read as another path is a bad one.
    if (isRelayed(target.path)) assertPlain(target.path);
    throw methodRefused(req.method, match.allow);
  };
}

/** Every path of the record interface that names no handle. */
const isRelayed = (path: string): boolean => ownerOf(path) === 'record' && rawHandleOf(path) === undefined;

/** A route with a condition alone does not make a path. */
const isConditional = (routes: readonly Route[]): boolean => routes.every(({ when }) => when !== undefined);

function createInterfaceErrorReply({
  errorReplies,
}: Pick<PipelineDeps, 'errorReplies'>): ErrorRequestHandler {
  return function interfaceErrorReply(
    error: unknown,
    req: Request,
    res: Response,
    next: NextFunction,
  ): unknown {
    const reply = hasContext(res) ? errorReplies[ownerOf(contextOf(res).target.path)] : undefined;
    if (reply !== undefined) return reply(error, req, res, next);
    next(error);
    return undefined;
  };
}

/** The caller for the limits of the Handle server. A request that a traffic rule refuses ends here. */
function createAdmission(admit: Admit): RequestHandler {
  return async function admitRequest(req: Request, res: Response, next: NextFunction): Promise<void> {
    const admitting = admit(req, res);
    contextOf(res).caller = admitting instanceof Promise ? await admitting : admitting;
    next();
  };
}
