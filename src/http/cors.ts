// CORS headers and preflight responses of a Handle server, plus `Vary: Origin`.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type HeaderLines, forbidSniffing, linesOf } from './raw-response.js';

const ALLOW_ORIGIN = 'Access-Control-Allow-Origin';
const EXPOSE_HEADERS = 'Access-Control-Expose-Headers';

// Recorded from a Handle server ("OPTIONS preflight GET").
const METHODS = ['GET', 'POST', 'HEAD', 'PUT', 'DELETE'];
const HEADERS = ['X-Requested-With', 'Authorization', 'Origin', 'Accept', 'Content-Type'];
/** Headers that Handle servers do not allow: allowed on request, so that other preflights match the recording. */
const CONDITIONS = ['If-Match', 'If-None-Match'];
const MAX_AGE_SECONDS = 86_400;

/** Matches the response headers that scripts may always read (Fetch standard), or have no use for. */
const NOT_EXPOSED =
  /^(cache-control|content-language|content-type|expires|last-modified|pragma|vary|x-content-type-options|access-control-.*)$/i;

/** Allows any origin without credentials: a page can then read only what any client can. */
export function allowOrigin({ headers: { origin } }: IncomingMessage, res: ServerResponse): void {
  if (origin !== undefined) res.setHeader(ALLOW_ORIGIN, origin);
}

/** Lets scripts read the response headers. Call it after setting all headers. */
export function exposeHeaders(res: ServerResponse): void {
  if (!res.hasHeader(ALLOW_ORIGIN)) return;
  res.setHeader(EXPOSE_HEADERS, exposedOf(res.getHeaderNames()));
}

/** Adds the header that lets scripts read the headers that are set and those in `lines`. */
export function exposing(res: ServerResponse, lines: HeaderLines): HeaderLines {
  if (!res.hasHeader(ALLOW_ORIGIN)) return lines;
  return (lines + exposingLine([...res.getHeaderNames(), ...namesIn(lines)])) as HeaderLines;
}

/** Allows the origin, and lets scripts read the headers, of a prepared response. */
export const linesWithCors = (lines: HeaderLines, origin: string): HeaderLines =>
  (linesOf([ALLOW_ORIGIN, origin]) + lines + exposingLine(namesIn(lines))) as HeaderLines;

const namesIn = (lines: HeaderLines): readonly string[] => lines.match(/^[^:\r\n]+/gm) ?? [];

/** Lines by header names: few distinct sets, but any client that may write a record spells header names. */
const exposingLines = new Map<string, HeaderLines>();
const MAX_EXPOSING_LINES = 200;

function exposingLine(names: readonly string[]): HeaderLines {
  const all = names.join();
  let line = exposingLines.get(all);
  if (line === undefined) {
    line = linesOf([EXPOSE_HEADERS, exposedOf(names)]);
    if (exposingLines.size >= MAX_EXPOSING_LINES) exposingLines.clear();
    exposingLines.set(all, line);
  }
  return line;
}

function exposedOf(names: readonly string[]): string {
  const titled = names
    .filter((name) => !NOT_EXPOSED.test(name))
    .map((name) =>
      name
        .toLowerCase()
        .replace(/\b[a-z]/g, (letter) => letter.toUpperCase())
        .replace('Etag', 'ETag'),
    );
  return [...new Set([...titled, 'Content-Length'])].join(',');
}

/** Responds to a preflight; any other OPTIONS request gets the path's methods in `Allow`. */
export function answerOptions(req: IncomingMessage, res: ServerResponse, methods: readonly string[]): void {
  if (!isPreflight(req)) {
    res.setHeader('Allow', methods.join(', '));
    endEmpty(res);
    return;
  }
  const requested = req.headers['access-control-request-headers']?.toLowerCase() ?? '';
  const conditions = CONDITIONS.filter((name) => requested.includes(name.toLowerCase()));
  answerPreflight(req, res, conditions);
}

export const isPreflight = ({ headers }: IncomingMessage): boolean =>
  headers.origin !== undefined && headers['access-control-request-method'] !== undefined;

/** Responds to a preflight; a disallowed one gets 200 without CORS headers. `more` lists additional allowed headers. */
export function answerPreflight(req: IncomingMessage, res: ServerResponse, more: readonly string[]): void {
  const method = req.headers['access-control-request-method'] ?? '';
  const allowed = [...HEADERS, ...more];
  const requested = (req.headers['access-control-request-headers'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase());
  const known = new Set(['', ...allowed.map((name) => name.toLowerCase())]);
  if (METHODS.includes(method) && requested.every((name) => known.has(name))) {
    res.setHeader('Access-Control-Max-Age', String(MAX_AGE_SECONDS));
    res.setHeader('Access-Control-Allow-Methods', METHODS.join(','));
    res.setHeader('Access-Control-Allow-Headers', allowed.join(','));
  } else {
    res.removeHeader(ALLOW_ORIGIN);
  }
  endEmpty(res);
}

function endEmpty(res: ServerResponse): void {
  forbidSniffing(res);
  res.setHeader('Vary', 'Origin');
  res.setHeader('Content-Length', '0');
  res.statusCode = 200;
  res.end();
}
