// The checks that each request of the public listener passes before its handler.
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';
import { type RequestContext, contextOf } from './context.js';
import type { Listener } from './route-table.js';

/** Returns the error that rejects a request to any interface; undefined if it is accepted. */
export type RequestCheck = (
  req: IncomingMessage,
  target: string,
  isLoop: boolean,
) => ServiceError | undefined;

interface RequestCheckParts {
  maxRequestLineBytes: number;
  /** Returns the error with which a judge has rejected the request, if any. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
}

/** Creates the check that also prepared responses pass. */
export function createRequestCheck({ maxRequestLineBytes, refusalOf }: RequestCheckParts): RequestCheck {
  return function checkRequest(req, target, isLoop) {
    if ((req.method ?? '').length + target.length + ' HTTP/1.1 '.length > maxRequestLineBytes) {
      const detail = `at most ${maxRequestLineBytes} bytes are read`;
      return new ServiceError('REQUEST_LINE_TOO_LONG', { detail });
    }
    // `Via` contains the name of this proxy: the upstream address leads back here (RFC 9110 §7.6.3).
    if (isLoop) return new ServiceError('LOOP_DETECTED');
    return refusalOf(req);
  };
}

interface CheckStepParts {
  check: RequestCheck;
  /** Name of this proxy in `Via`. */
  pseudonym: string;
}

/** Creates the step of the checks. The step throws the error that rejects the request. */
export function createCheckStep({ check, pseudonym }: CheckStepParts): Listener {
  return function checkStep(req, res) {
    const context = contextOf(res);
    const { via = '', authorization } = req.headers;
    const refusal = check(req, context.target.raw, via.includes(pseudonym));
    if (refusal) throw refusal;
    if (authorization !== undefined) refuseScript(req, context);
    assertKnownMethod(req);
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

function assertKnownMethod({ method = '' }: IncomingMessage): void {
  if (KNOWN_METHODS.has(method)) return;
  throw new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${method}` });
}
