// The Express pipeline: the middleware and routes of a request, in the order in which they must run.
import express, {
  type ErrorRequestHandler,
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { contextOf, putContext } from '../http/context.js';
import { cors } from '../http/cors.js';
import { type ReportUnexpected, createErrorReply } from '../http/error-reply.js';
import type { ScanHeaders } from '../http/fast-headers.js';
import { readFormat, readParameters } from '../http/query.js';
import { type AcceptRequestId, REQUEST_ID } from '../http/request-id.js';
import type { RequestLog } from '../http/request-log.js';
import { originForm, rawHandleOf, readHandle, readTarget } from '../http/target.js';
import type { Admit, LimitMiss } from '../upstream/caller.js';
import type { BatchRoutes } from './batch/routes.js';
import { isList } from './record-request.js';
import {
  type RequestCheck,
  answerOptions,
  createRequestChecks,
  refuseMethod,
  refuseUnknownEndpoint,
} from './request-checks.js';

export interface PipelineDeps {
  check: RequestCheck;
  scanHeaders: ScanHeaders;
  /** Whether a script gets what a login may read. */
  jsonpWithCredentials: boolean;
  /** Judges a request by the traffic rules. */
  admit: Admit;
  limitMiss: LimitMiss;
  requestLog: RequestLog;
  acceptRequestId: AcceptRequestId;
  onUnexpected: ReportUnexpected;
  writeRoute: RequestHandler;
  deletionGuard: RequestHandler;
  /** Everything else a Handle server offers under `/api`. */
  passThrough: RequestHandler;
  /** Many handles in one request, where it is turned on. */
  batch?: BatchRoutes;
  /** The reverse look-up service, where one is configured. */
  reverseLookup?: RequestHandler;
  /** Redirects and pages for every path that is not of an API, where they are turned on. */
  redirect?: { routes: RequestHandler[]; errorReply: ErrorRequestHandler };
  /** Native messages over HTTP, where that is turned on. */
  tunnel?: { path: RegExp; route: RequestHandler };
  /** The description of the interface. */
  openApi: RequestHandler;
  /** ePIC v2, where it is turned on. */
  v2?: { route: RequestHandler; errorReply: ErrorRequestHandler };
  /** Trusted proxies, in the syntax of Express. */
  trustedProxies: readonly string[];
}

// Regular expressions without groups: Express decodes nothing, and a broken escape reaches our own parser.
const NAMED_HANDLE = /^\/api\/handles\/[^?]/;
const OTHER_ENDPOINTS = /^\/api\/(?:handles|sessions|site|prefixes|verifications)(?:\/|$)/;
const REVERSE_LOOKUP = /^\/hrls(?:\/|$)/;

/** Paths for browsers: all but the API, in any case, and the reverse look-up. */
const FOR_BROWSERS = /^(?!\/api(?:\/|$)|\/hrls(?:\/|$))/i;
/** No handle: those have a slash between prefix and suffix. */
const OPENAPI = /^\/openapi(?:\.json)?$/;
const V2 = /^\/api\/v2(?=\/|$)/;
const BATCH = /^\/api\/resolve\/?$/;
const HANDLES = /^\/api\/handles(?:\/|$)/;

export function createPipeline(deps: PipelineDeps): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('trust proxy', deps.trustedProxies);
  app.use(createBeginning(deps)); // everything below reads the target from here, undecoded
  app.use(cors); // errors carry the CORS headers too
  app.use(createRequestChecks(deps)); // before any route
  app.use(createAdmission(deps.admit));
  if (deps.v2) app.all(V2, deps.v2.route); // has OPTIONS and errors of its own
  app.options(/^/, answerOptions);
  app.trace(/^/, refuseMethod); // it would echo credentials back to scripts (RFC 9110 §9.3.8)
  if (deps.batch) {
    app.get(HANDLES, deps.batch.byQuery); // leaves all but batches to the next route
    app.post(BATCH, deps.batch.byBody);
    app.all(BATCH, refuseMethod);
  }
  const limitRead = createReadLimit(deps.limitMiss);
  app.get(HANDLES, parseHandle, limitRead, deps.passThrough); // GET and HEAD that read.ts leaves: never cached
  app.delete(NAMED_HANDLE, deps.deletionGuard); // before the write: refused without the upstream
  app.put(NAMED_HANDLE, deps.writeRoute);
  app.delete(NAMED_HANDLE, deps.writeRoute);
  app.post(NAMED_HANDLE, parseHandle, limitRead, deps.passThrough); // a read on a Handle server; RFC 9111 §4 wants it written through
  app.all(OTHER_ENDPOINTS, deps.passThrough); // lists, sessions, site: never cached
  if (deps.reverseLookup) app.all(REVERSE_LOOKUP, deps.reverseLookup);
  if (deps.tunnel) app.post(deps.tunnel.path, deps.tunnel.route); // before the redirects, which take any other POST
  app.get(OPENAPI, deps.openApi); // before the redirects, to which every other path belongs
  app.all(OPENAPI, refuseMethod);
  if (deps.redirect) app.all(FOR_BROWSERS, deps.redirect.routes);
  app.use(refuseUnknownEndpoint); // the rest
  if (deps.redirect) app.use(FOR_BROWSERS, deps.redirect.errorReply); // errors as pages, where people see them
  if (deps.v2) app.use(V2, deps.v2.errorReply); // what was refused before it came to v2
  app.use(createErrorReply(deps)); // the one place for failures, so the last
  return app;
}

/** Sets the context, and logs each request. */
function createBeginning({
  requestLog,
  acceptRequestId,
}: Pick<PipelineDeps, 'requestLog' | 'acceptRequestId'>): RequestHandler {
  return function begin(req: Request, res: Response, next: NextFunction): void {
    const target = readTarget(req.url);
    const family = V2.test(target.path) ? 'v2' : FOR_BROWSERS.test(target.path) ? 'redirect' : 'record';
    const format = readFormat(readParameters(target.query));
    const requestId = acceptRequestId(req.get(REQUEST_ID), req);
    putContext(res, { family, target, format, result: 'local', requestId });
    requestLog(req, res);
    // Express matches its routes with this: it has to be the path that every check reads, of the absolute form too.
    if (!req.url.startsWith(target.path)) req.url = originForm(target);
    next();
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

/** An anonymous read that is forwarded is a miss like others. Of a login the Handle server judges. */
function createReadLimit(limitMiss: LimitMiss): RequestHandler {
  return async function limitRead(req: Request, res: Response, next: NextFunction): Promise<void> {
    const { handle, caller } = contextOf(res);
    if (handle === undefined || req.headers.authorization !== undefined) {
      next();
      return;
    }
    const forward = (): Promise<unknown> => {
      next();
      return new Promise((resolve) => res.once('close', resolve));
    };
    // A client that leaves early learns nothing, and neither does this count.
    const isAnswered = (): boolean => res.writableFinished && res.statusCode < 500;
    await limitMiss(caller, forward, () => (isAnswered() ? res.statusCode === 404 : undefined));
  };
}

/** With credentials a wrong password has to be 401 even for public data. A list has no handle. */
function parseHandle(_req: Request, res: Response, next: NextFunction): void {
  const context = contextOf(res);
  const rawHandle = rawHandleOf(context.target.path) ?? '';
  if (!isList(rawHandle, readParameters(context.target.query))) context.handle = readHandle(rawHandle);
  next();
}
