// The Express pipeline: the middleware and routes of a request, in the order in which they must run.
import express, {
  type ErrorRequestHandler,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { contextOf, hasContext } from '../http/context.js';
import { answerOptions } from '../http/cors.js';
import { createReportUnexpected, createSendError } from '../http/error-reply.js';
import { expressListener, toErrorHandler } from '../http/express-listener.js';
import type { FailingListener } from '../http/guard.js';
import type { Route } from '../http/route-table.js';
import { type Owner, ownerOf, rawHandleOf } from '../http/target.js';
import type { IsTrustedProxy } from '../server/client-address.js';
import {
  type StartDeps,
  assertPlain,
  createStartRequest,
  locate,
  methodRefused,
  unknownEndpoint,
} from './request-checks.js';

interface PipelineParts extends Omit<StartDeps, 'jsonpWithCredentials'> {
  /** By the name that the routes give them. */
  handlers: Readonly<Record<string, RequestHandler | undefined>>;
  /** An interface that has OPTIONS, 404 and 405 of its own. */
  fallbacks: { [owner in Owner]?: RequestHandler };
  /** Errors in the form of an interface; others are as those of the record interface. */
  errorReplies: { [owner in Owner]?: ErrorRequestHandler };
  isTrustedProxy: IsTrustedProxy;
}

export function createPipeline(
  { http: { jsonpWithCredentials } }: Pick<Config, 'http'>,
  context: Context,
  parts: PipelineParts,
): FailingListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', parts.isTrustedProxy);
  app.use(createStart({ ...parts, jsonpWithCredentials })); // everything below reads target and route from here
  app.use(createDispatch(parts));
  app.use(createInterfaceErrorReply(parts));
  // The one place for failures, so the last.
  app.use(toErrorHandler(createSendError({ onUnexpected: createReportUnexpected(context) })));
  return expressListener(app);
}

function createStart(deps: StartDeps): RequestHandler {
  const startRequest = createStartRequest(deps);
  return async function start(req: Request, res: Response, next: NextFunction): Promise<void> {
    const { originalUrl: rawTarget } = req;
    await startRequest(req, res, { rawTarget, located: locate(deps.table, req, rawTarget) });
    next();
  };
}

/** Recordings "unknown: GET /api/foo" and "path: server: …". */
function createDispatch({
  handlers,
  fallbacks,
}: Pick<PipelineParts, 'handlers' | 'fallbacks'>): RequestHandler {
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
}: Pick<PipelineParts, 'errorReplies'>): ErrorRequestHandler {
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
