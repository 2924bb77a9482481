// The first steps of a request, before any route sees it, and the check of paths that are forwarded as they came.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { type RequestContext, putContext } from '../http/context.js';
import { allowOrigin } from '../http/cors.js';
import type { FastHeaders, ScanHeaders } from '../http/fast-headers.js';
import { readFormat, readParameters } from '../http/query.js';
import type { AcceptRequestId } from '../http/request-id.js';
import type { RequestLog } from '../http/request-log.js';
import { type RouteTable, routeFor } from '../http/route-table.js';
import { ownerOf, readTarget } from '../http/target.js';
import type { Admit } from '../upstream/caller.js';

const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']);

/** The reason to refuse a request to any interface. */
export type RequestCheck = (
  req: IncomingMessage,
  target: string,
  headers: Pick<FastHeaders, 'isLoop'>,
) => ServiceError | undefined;

interface RequestCheckDeps {
  maxRequestLineBytes: number;
  /** The refusal by a traffic rule, where one has judged the request. */
  refusalOf: (req: IncomingMessage) => ServiceError | undefined;
}

/** For reads and for the pipeline. */
export function createRequestCheck({ maxRequestLineBytes, refusalOf }: RequestCheckDeps): RequestCheck {
  return function checkRequest(req, target, { isLoop }) {
    if ((req.method ?? '').length + target.length + ' HTTP/1.1 '.length > maxRequestLineBytes) {
      const detail = `at most ${maxRequestLineBytes} bytes are read`;
      return new ServiceError('REQUEST_LINE_TOO_LONG', { detail });
    }
    // Our own name in `Via`: the upstream address leads back here (RFC 9110 §7.6.3).
    if (isLoop) return new ServiceError('LOOP_DETECTED');
    return refusalOf(req);
  };
}

export interface StartDeps {
  table: RouteTable;
  check: RequestCheck;
  scanHeaders: ScanHeaders;
  /** Whether a script gets what a login may read. */
  jsonpWithCredentials: boolean;
  /** Judges a request by the traffic rules. */
  admit: Admit;
  requestLog: RequestLog;
  acceptRequestId: AcceptRequestId;
}

/** What a request target names. */
export type Located = Pick<RequestContext, 'target' | 'match' | 'route'>;

export function locate(table: RouteTable, req: IncomingMessage, rawTarget: string): Located {
  const target = readTarget(rawTarget);
  const match = table.at(target.path);
  return { target, match, route: match && routeFor(match, req, target) };
}

/**
 * Context, log, CORS, checks and traffic rules, in this order: a refusal is logged, and a script may read it. The context is
 * set at once. Rejects with the refusal.
 */
export type StartRequest = (
  req: IncomingMessage,
  res: ServerResponse,
  at: { rawTarget: string; located: Located },
) => Promise<void>;

const FAMILIES = {
  record: 'record',
  list: 'record',
  batch: 'record',
  v2: 'v2',
  redirect: 'redirect',
  native: 'native-tunnel',
} as const;

/** For all requests but reads of records, whose steps read.ts has in its own order. */
export function createStartRequest(deps: StartDeps): StartRequest {
  const { check, scanHeaders, jsonpWithCredentials, admit, requestLog, acceptRequestId } = deps;
  return async function startRequest(req, res, { rawTarget, located }) {
    const { target, route } = located;
    const headers = scanHeaders(req.rawHeaders);
    const context: RequestContext = {
      ...located,
      family: FAMILIES[route?.interface ?? ownerOf(target.path)],
      format: readFormat(readParameters(target.query)),
      result: 'local',
      requestId: acceptRequestId(headers.requestId, req),
    };
    putContext(res, context);
    requestLog(req, res);
    allowOrigin(req, res);
    const refusal = check(req, rawTarget, headers);
    if (refusal) throw refusal;
    if (headers.hasCredentials && !jsonpWithCredentials) refuseScript(req, context);
    assertKnownMethod(req);
    const admitting = admit(req, res);
    context.caller = admitting instanceof Promise ? await admitting : admitting;
  };
}

function assertKnownMethod({ method = '' }: IncomingMessage): void {
  if (KNOWN_METHODS.has(method)) return;
  throw new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${method}` });
}

/**
 * Any page may load a script from here, and the browser adds the login that it remembers. Scripts are loaded with GET;
 * ePIC v2 has no JSONP.
 *
 * @throws ServiceError JSONP_WITH_LOGIN, as JSON
 */
function refuseScript({ method }: IncomingMessage, context: RequestContext): void {
  const { family, format } = context;
  if (format.callback === undefined || family === 'v2' || (method !== 'GET' && method !== 'HEAD')) return;
  context.format = { pretty: format.pretty };
  throw new ServiceError('JSONP_WITH_LOGIN', { detail: 'leave out callback or the login' });
}

/** Recording "unknown: GET /api/foo". */
export const unknownEndpoint = (method: string, path: string): ServiceError =>
  new ServiceError('UNKNOWN_ENDPOINT', { message: `Unknown HTTP API endpoint ${method} ${path}` });

/** A 405 states the methods that are allowed (RFC 9110 §15.5.6). */
export const methodRefused = (method: string, allow: readonly string[]): ServiceError =>
  new ServiceError('METHOD_REFUSED', { detail: method, allow });

/**
 * A request that names no handle is forwarded as it came, so its path must be plain. A server behind us that folds dot
 * segments, or decodes a path twice, would otherwise find a handle in it that was not fenced here, and that the
 * deletion rules have not seen.
 *
 * @throws ServiceError BAD_PATH
 */
export function assertPlain(path: string): void {
  if (isPlain(path)) return;
  throw new ServiceError('BAD_PATH', {
    message:
      'Only in a handle: dot segments, empty segments, backslashes, control characters, bytes beyond UTF-8',
  });
}

/** The characters of a path (RFC 3986 §3.3). */
const PATH = /^\/(?:[\w.~!$&'()*+,;=:@/-]|%[\da-f]{2})*$/i;

const MAX_ENCODING_LAYERS = 4;

/** Whether it stays a plain path each time it is decoded once more. */
function isPlain(path: string): boolean {
  if (!PATH.test(path)) return false;
  let text: string | undefined = path;
  for (let layer = 0; layer < MAX_ENCODING_LAYERS; layer++) {
    if (text === undefined || !hasPlainSegments(text)) return false;
    const decoded = decodeOnce(text);
    if (decoded === text) return true;
    text = decoded;
  }
  return false;
}

/** An empty segment is allowed at the end. To some servers a segment ends at its `;`. */
function hasPlainSegments(path: string): boolean {
  if (/[\\\x00-\x1f\x7f]/.test(path)) return false;
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments.every((segment) => !/^(\.{0,2})(;|$)/.test(segment));
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined for bytes that are not UTF-8. Some servers read the overlong form `%c0%ae` as a dot. */
function decodeOnce(text: string): string | undefined {
  try {
    return text.replace(/(?:%[\da-f]{2})+/gi, (escaped) =>
      utf8.decode(Buffer.from(escaped.replaceAll('%', ''), 'hex')),
    );
  } catch {
    return undefined;
  }
}
