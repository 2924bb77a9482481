// Creates the Express router of the public listener: for each route its steps and its handler, in a fixed order;
// also adds the routes of the admin listener to its router.
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ErrorRequestHandler,
  type IRouter,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
  Router,
} from 'express';
import { ServiceError } from '../errors.js';
import { tryDecode } from '../handle/bytes.js';
import { type Admit, type Handler, contextOf } from './context.js';
import { answerOptions } from './cors.js';
import type { FailingListener, SendError } from './error-reply.js';
import type { SendPrepared } from './prepared-responses.js';
import {
  type Listener,
  type Place,
  type Route,
  type RoutedPath,
  pathsOf,
  routedMethod,
} from './route-table.js';
import { type Target, assertPlain, ownerOf } from './target.js';

/** The handlers of all interfaces, which each reload creates. */
export interface Interfaces {
  /** By the `handler` of a route. */
  handlers: Readonly<Record<string, Handler | undefined>>;
  /** Responds to a path without a route for the method. */
  otherwise: Handler;
  sendError: SendError;
}

/** The steps of a request, in this order. */
interface RequestSteps {
  /** Sends a prepared response. It is the first step, unless a rule concerns responses from memory. */
  sendPrepared: SendPrepared;
  /** Sets the context of a request, before its path is matched. */
  open: Listener;
  /** Judges before all responses from memory; undefined if no rule concerns them. */
  judgeHits: Listener | undefined;
  /** Logs and checks a request. @throws ServiceError for a request that is rejected */
  begin: Handler;
  /** Last, because it takes tokens, for which it may ask Redis. A handler may admit its misses itself. */
  admit: Admit;
}

/** @throws Error for a route without a handler */
export function createRouter(
  routes: readonly Route[],
  { handlers, otherwise, sendError }: Interfaces,
  steps: RequestSteps,
): FailingListener {
  const { sendPrepared, open, judgeHits } = steps;
  const router = Router();
  addRoutes(router, routes, handlers, (handler = otherwise, path, route) =>
    handleBy(handler, steps, path, route),
  );
  router.use(errorHandler(sendError));
  return function route(req, res, fail) {
    // A repeated request for a record in memory needs neither a context nor a route.
    if (judgeHits === undefined && sendPrepared(req, res, req.url ?? '')) return;
    // Before the router, which cannot parse an absolute target with an invalid host.
    open(req, res);
    router(req as Request, res as Response, fail as NextFunction);
  };
}

/**
 * Adds a handler to a router for each route, for each path with any other method, and for any other path. `handlers`: by
 * the `handler` of a route.
 *
 * @throws Error for a route without a handler
 */
export function addRoutes<Handling>(
  router: IRouter,
  routes: readonly Route[],
  handlers: Readonly<Record<string, Handling | undefined>>,
  handle: (handler?: Handling, path?: RoutedPath, route?: Route) => RequestHandler,
): void {
  for (const path of pathsOf(routes)) {
    const place = router.route(path.pattern);
    for (const route of path.routes) {
      const handler = handlers[route.handler];
      if (handler === undefined) throw new Error(`no handler ${route.handler} for ${route.path}`);
      place[METHODS[route.method]](handle(handler, path, route));
    }
    place.all(handle(undefined, path));
  }
  router.use(handle());
}

const METHODS = { GET: 'get', PUT: 'put', POST: 'post', DELETE: 'delete' } as const;

/** Handles the requests of a route, and passes on those for which its condition does not hold. */
const handleBy = (
  handler: Handler,
  { sendPrepared, judgeHits, begin, admit }: RequestSteps,
  path?: RoutedPath,
  route?: Route,
): RequestHandler =>
  async function handle(req, res, next) {
    const context = contextOf(res);
    if (route?.when?.(req, context.target) === false) {
      next();
      return;
    }
    context.match = path;
    context.route = route;
    context.family = route?.family ?? context.family;
    if (judgeHits !== undefined) {
      await judgeHits(req, res);
      if (sendPrepared(req, res, context.target.raw)) return;
    }
    begin(req, res, context);
    if (route?.admitsMisses !== true) await admit(req, res, context);
    await handler(req, res, context);
  };

/** Express recognises an error handler by its four parameters. */
export const errorHandler =
  (sendError: SendError): ErrorRequestHandler =>
  (error: unknown, req: Request, res: Response, next: NextFunction) =>
    sendError(req, res, error).catch(next);

/**
 * OPTIONS gets 200 for any path, as on HDLProxy.
 *
 * @throws ServiceError UNKNOWN_ENDPOINT, BAD_PATH, METHOD_NOT_ALLOWED (recordings "unknown: GET /api/foo",
 * "path: server: …")
 */
export function answerUnrouted(req: IncomingMessage, res: ServerResponse, { target, match }: Place): void {
  const method = routedMethod(req);
  const { path } = target;
  if (method === 'OPTIONS') {
    answerOptions(req, res, match?.allow ?? ['OPTIONS']);
    return;
  }
  if (match === undefined || haveConditions(match.routes))
    throw new ServiceError('UNKNOWN_ENDPOINT', { message: `Unknown HTTP API endpoint ${method} ${path}` });
  // An ambiguous path is rejected, as for forwarded methods, because a server could read it as a different path.
  if (isForwarded(target)) assertPlain(path);
  // A 405 must list the allowed methods (RFC 9110 §15.5.6).
  throw new ServiceError('METHOD_NOT_ALLOWED', { detail: method, allow: match.allow });
}

/** Whether the path belongs to the record interface, but names no handle. */
const isForwarded = ({ path, rawHandle }: Target): boolean =>
  ownerOf(path) === 'record' && rawHandle === undefined;

/** Whether all routes have a condition; without an unconditional route the path does not exist. */
const haveConditions = (routes: readonly Route[]): boolean => routes.every(({ when }) => when !== undefined);

export type AdminHandler = RequestHandler;

/** A call of the admin listener. */
interface Call extends Place {
  /** Undefined for an unknown path or an unsupported method. */
  route?: Route | undefined;
  /** Log field with the call's handle, purge, log level, prefix or import counts. */
  details?: unknown;
  /** Error that the response reports. */
  failure?: ServiceError;
}

export const callOf = (res: Response): Call => res.locals as Call;

/** @throws ServiceError BAD_REQUEST for invalid percent-encoding */
export function decodeParameter(raw: string): string {
  const text = tryDecode(decodeURIComponent, raw);
  if (text === undefined)
    throw new ServiceError('BAD_REQUEST', { detail: 'the path is not percent-encoded' });
  return text;
}
