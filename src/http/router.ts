// Creates the Express router of the public listener: for each route its steps and its handler, in a fixed order.
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type ErrorRequestHandler,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
  Router,
} from 'express';
import { maybe } from '../maybe.js';
import { contextOf } from './context.js';
import type { SendError } from './error-reply.js';
import type { FailingListener } from './guard.js';
import { type Listener, type Route, type RoutedPath, assertHandled, pathsOf } from './route-table.js';

interface RouterParts {
  routes: readonly Route[];
  /** Handlers by the `handler` of their route. */
  handlers: Readonly<Record<string, Listener | undefined>>;
  /** Sets the context of a request, before its path is matched. */
  open: Listener;
  /** The steps before each handler, in order; undefined if no part of the proxy needs one. */
  steps: readonly (RequestHandler | undefined)[];
  /** The last step, unless the handler of the route admits its misses. */
  admit: Listener;
  /** Responds to a path without a route for the method. */
  otherwise: Listener;
  sendError: SendError;
}

/** Creates a step that passes the request on after `act`. */
export const step =
  (act: Listener): RequestHandler =>
  (req, res, next) =>
    maybe(act(req, res), () => {
      next();
    });

/** Creates a step that passes the request on unless `send` has sent the response. */
export const unlessSent =
  (send: (req: IncomingMessage, res: ServerResponse) => boolean): RequestHandler =>
  (req, res, next) => {
    if (!send(req, res)) next();
  };

/** @throws Error for a route without a handler */
export function createRouter(parts: RouterParts): FailingListener {
  const { routes, handlers, open, otherwise } = parts;
  assertHandled(routes, handlers);
  const steps = parts.steps.filter((each) => each !== undefined);
  const admit = step(parts.admit);
  const router = Router();
  const add = (place: ReturnType<typeof router.route<RegExp>>, path: RoutedPath, route: Route): void => {
    const before = route.admitsMisses === true ? steps : [...steps, admit];
    place[METHODS[route.method]](enter(path, route), before, handlers[route.handler] as RequestHandler);
  };
  for (const path of pathsOf(routes)) {
    for (const route of path.routes)
      if (route.when !== undefined) add(router.route(path.pattern), path, route);
    const place = router.route(path.pattern);
    for (const route of path.routes) if (route.when === undefined) add(place, path, route);
    place.all(enter(path), steps, admit, otherwise);
  }
  router.use(steps, admit, otherwise);
  router.use(errorHandler(parts.sendError));
  return function route(req, res, fail) {
    // Before the router, which cannot parse an absolute target with an invalid host.
    open(req, res);
    router(req as Request, res as Response, fail as NextFunction);
  };
}

const METHODS = { GET: 'get', PUT: 'put', POST: 'post', DELETE: 'delete' } as const;

/** Sets the route of a request; `next('route')` leaves a route whose condition does not hold. */
const enter =
  (path: RoutedPath, route?: Route): RequestHandler =>
  (req, res, next) => {
    const context = contextOf(res);
    if (route?.when?.(req, context.target) === false) {
      next('route');
      return;
    }
    context.match = path;
    context.route = route;
    context.family = route?.family ?? context.family;
    next();
  };

/** Express recognises an error handler by its four parameters. */
export const errorHandler =
  (sendError: SendError): ErrorRequestHandler =>
  (error: unknown, req: Request, res: Response, next: NextFunction) =>
    sendError(req, res, error).catch(next);
