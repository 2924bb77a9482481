// The steps of each request of the public listener before its handler: the log, CORS, and the checks.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { Host } from '../host.js';
import { ServiceError } from '../errors.js';
import { type Hooks, type RequestSpan, firstOf } from '../hooks.js';
import type { LoggedRequest } from '../observe/request-lines.js';
import { type Handler, type RequestContext, requestIdOf } from './context.js';
import { allowOrigin } from './cors.js';
import type { Route } from './route-table.js';
import { isOfSessions } from './target.js';

/** Returns the error that rejects a request to any interface; undefined if it is accepted. */
export type RequestCheck = (
  req: IncomingMessage,
  target: string,
  isLoop: boolean,
) => ServiceError | undefined;

/**
 * Creates the check that also prepared responses pass. `refusalOf` returns the error with which a judge has rejected a
 * request, if any; undefined if no judge precedes the check.
 */
export function createRequestCheck(
  maxRequestLineBytes: number,
  refusalOf: ((req: IncomingMessage) => ServiceError | undefined) | undefined,
): RequestCheck {
  return function checkRequest(req, target, isLoop) {
    if ((req.method ?? '').length + target.length + ' HTTP/1.1 '.length > maxRequestLineBytes) {
      const detail = `at most ${maxRequestLineBytes} bytes are read`;
      return new ServiceError('REQUEST_LINE_TOO_LONG', { detail });
    }
    // `Via` contains the name of this proxy: the upstream address leads back here (RFC 9110 §7.6.3).
    if (isLoop) return new ServiceError('LOOP_DETECTED');
    return refusalOf?.(req);
  };
}

/** Creates the function that runs the steps. It throws the error that rejects the request. */
export function createBegin(host: Host, check: RequestCheck): Handler {
  const { pseudonym } = host;
  const logRequest = createRequestLog(host);
  return function begin(req, res, context) {
    // Before all steps that may fail, so that a refusal is logged, and readable by scripts.
    logRequest(req, res, context);
    allowOrigin(req, res);
    const { via, authorization } = req.headers;
    const refusal = check(req, context.target.raw, via?.includes(pseudonym) === true);
    if (refusal) throw refusal;
    if (authorization !== undefined) refuseScript(req, context);
    assertKnownMethod(req, context);
  };
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

const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']);

/** Leaves sessions to the route, whose 405 is also for unknown methods on a Handle server. */
function assertKnownMethod({ method = '' }: IncomingMessage, { target }: RequestContext): void {
  if (KNOWN_METHODS.has(method) || isOfSessions(target.path)) return;
  throw new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${method}` });
}

/** Counts requests, and logs those selected by `log.requests`, without headers and query: they may hold credentials. */
function createRequestLog(host: Host): Handler {
  const { metrics, log, isLogged, hooks } = host;
  const hasSpans = hooks.spans.length > 0;
  return function requestLog(req, res, context) {
    const { method = '' } = req;
    const startedAt = performance.now();
    const span = hasSpans ? firstOf(hooks.spans, ({ current }) => current()) : undefined;
    res.once('close', () => {
      const { family, target, handle: { text: handle } = {}, result, failure, client } = context;
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
      const path = shownPath(target.path);
      const code = failure?.code;
      reportRead(hooks, req, context);
      span?.describe({
        'url.path': path,
        'handle_proxy.interface': family,
        'handle_proxy.result': result,
        ...(handle !== undefined && { 'handle_proxy.handle': handle }),
      });
      const request = {
        interface: family,
        method,
        handle,
        path,
        status: res.statusCode,
        result,
        ms,
        ...abortOf(res),
      };
      metrics.recent.countClient({
        // The address of a disconnected client may be unknown.
        network: isIP(client.address) === 0 ? undefined : client.network,
        agent: req.headers['user-agent'] ?? '',
        result,
        isRejected: failure?.rejectsClient === true,
      });
      metrics.countRequest({ ...request, code });
      if (isLogged(result) && log.isLevelEnabled('info'))
        writeLine(host, context, request, { failure, span });
    });
  };
}

/** A client that leaves causes no error of the response. */
const abortOf = ({ errored }: ServerResponse) => errored !== null && { aborted: true };

function writeLine(
  { hits, log }: Host,
  context: RequestContext,
  request: LoggedRequest,
  { failure, span }: { failure: ServiceError | undefined; span: RequestSpan | undefined },
): void {
  const requestId = requestIdOf(context);
  // pino costs a third of a miss.
  if (failure === undefined && span === undefined) {
    hits.logRequest(request, requestId);
    return;
  }
  const failed = failure && { code: failure.code, ...failure.diagnosis };
  log.info({ ...request, requestId, ...failed, ...(span && { traceId: span.traceId }) }, 'request');
}

function reportRead(
  { answered, failed }: Hooks,
  req: IncomingMessage,
  { handle, exists, family, route, result }: RequestContext,
): void {
  if (handle === undefined) return;
  if (exists !== undefined) for (const each of answered) each({ handle, exists, interface: family });
  else if (result === 'error' && isReadWithoutLogin(req, route)) for (const each of failed) each(handle);
}

const isReadWithoutLogin = ({ method, headers }: IncomingMessage, route: Route | undefined): boolean =>
  headers.authorization === undefined && (method === 'GET' || method === 'HEAD' || route?.isRead === true);

/** Maximum logged path length, because rejected request lines may be much longer. */
const MAX_PATH_LENGTH = 2000;

/** Masks session ids, which are credentials; `this` is a keyword, not an id. */
function shownPath(path: string): string {
  const shown = path.replace(/^(\/api\/sessions\/)(?!this$).+$/is, '$1***');
  return shown.length > MAX_PATH_LENGTH ? `${shown.slice(0, MAX_PATH_LENGTH)}…` : shown;
}
