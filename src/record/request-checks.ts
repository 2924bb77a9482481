// Checks of a request before any route sees it, and of the endpoints that name no handle.
import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import type { FastHeaders, ScanHeaders } from '../http/fast-headers.js';

const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']);

/** The reason to refuse a request to any interface. */
export type RequestCheck = (
  req: IncomingMessage,
  target: string,
  headers: Pick<FastHeaders, 'isLoop'>,
) => ServiceError | undefined;

interface RequestCheckDeps {
  maxRequestLineBytes: number;
  /** The refusal of a request above the rate limit, where there is one. */
  rateLimited?: ((req: IncomingMessage) => ServiceError | undefined) | undefined;
}

/** For reads and for the pipeline. */
export function createRequestCheck({ maxRequestLineBytes, rateLimited }: RequestCheckDeps): RequestCheck {
  return function checkRequest(req, target, { isLoop }) {
    if ((req.method ?? '').length + target.length + ' HTTP/1.1 '.length > maxRequestLineBytes) {
      const detail = `at most ${maxRequestLineBytes} bytes are read`;
      return new ServiceError('REQUEST_LINE_TOO_LONG', { detail });
    }
    // Our own name in `Via`: the upstream address leads back here (RFC 9110 §7.6.3).
    if (isLoop) return new ServiceError('LOOP_DETECTED');
    return rateLimited?.(req);
  };
}

export function createRequestChecks(check: RequestCheck, scanHeaders: ScanHeaders): RequestHandler {
  return function checkRequest(req: Request, res: Response, next: NextFunction): void {
    const refusal = check(req, req.originalUrl, scanHeaders(req.rawHeaders));
    if (refusal) throw refusal;
    // TRACE would echo credentials back to scripts (RFC 9110 §9.3.8).
    if (req.method === 'TRACE') {
      const methods = methodsAt(contextOf(res).target.path) ?? [...KNOWN_METHODS];
      throw methodRefused(req, res, methods);
    }
    if (!KNOWN_METHODS.has(req.method)) {
      throw new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${req.method}` });
    }
    next();
  };
}

/** The last route of an endpoint. */
export function refuseMethod(req: Request, res: Response): void {
  throw methodRefused(req, res, methodsAt(contextOf(res).target.path) ?? []);
}

/** The last route. */
export function refuseUnknownEndpoint({ method }: Request, res: Response): void {
  throw unknownEndpoint(method, contextOf(res).target.path);
}

/** Recording "unknown: GET /api/foo". */
const unknownEndpoint = (method: string, path: string): ServiceError =>
  new ServiceError('UNKNOWN_ENDPOINT', { message: `Unknown HTTP API endpoint ${method} ${path}` });

/** A 405 states the methods that are allowed (RFC 9110 §15.5.6). */
function methodRefused({ method }: Request, res: Response, allowed: readonly string[]): ServiceError {
  res.setHeader('Allow', allowed.join(', '));
  return new ServiceError('METHOD_REFUSED', { detail: method });
}

const READ = ['GET', 'HEAD'];

/** The first match counts. Methods: recordings "sessions: …" and "empty handle: …". */
const ENDPOINTS: readonly (readonly [path: RegExp, methods: readonly string[]])[] = [
  [/^\/api\/handles\/?$/, [...READ, 'POST', 'PUT', 'DELETE']],
  [/^\/api\/resolve\/?$/, ['POST']],
  [/^\/api\/sessions\/this$/, [...READ, 'POST', 'PUT', 'DELETE']],
  [/^\/api\/sessions(\/|$)/, ['POST']],
  [/^\/api\/site(\/|$)/, READ],
  [/^\/api\/prefixes\/?$/, [...READ, 'POST', 'DELETE']],
  [/^\/api\/prefixes\//, ['POST', 'DELETE']],
  [/^\/api\/verifications(\/|$)/, ['POST']],
  [/^\/hrls(\/|$)/, READ],
];

/** The methods of an endpoint, OPTIONS included; undefined when there is no endpoint at this path. */
function methodsAt(path: string): readonly string[] | undefined {
  const [, methods] = ENDPOINTS.find(([pattern]) => pattern.test(path)) ?? [];
  return methods && [...methods, 'OPTIONS'];
}

/**
 * A request that names no handle is forwarded as it came, so its path must be plain. A server behind us that folds dot
 * segments, or decodes a path twice, would otherwise find a handle in it that was not fenced here, and that the
 * deletion rules have not seen.
 *
 * @throws ServiceError BAD_PATH, UNKNOWN_ENDPOINT, METHOD_REFUSED
 */
export function assertEndpoint(req: Request, res: Response, path: string): void {
  if (!isPlain(path)) {
    throw new ServiceError('BAD_PATH', {
      message:
        'Only in a handle: dot segments, empty segments, backslashes, control characters, bytes beyond UTF-8',
    });
  }
  const methods = methodsAt(path);
  if (methods === undefined) throw unknownEndpoint(req.method, path);
  if (!methods.includes(req.method)) throw methodRefused(req, res, methods);
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
