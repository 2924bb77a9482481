// Cross-origin requests, answered as the Handle server answers them, plus `Vary: Origin`.
import type { NextFunction, Request, Response } from 'express';
import { type HeaderLines, linesOf } from './raw-response.js';

const ALLOW_ORIGIN = 'Access-Control-Allow-Origin';
const EXPOSE_HEADERS = 'Access-Control-Expose-Headers';

// Recording "OPTIONS preflight GET".
const METHODS = ['GET', 'POST', 'HEAD', 'PUT', 'DELETE'];
const HEADERS = ['X-Requested-With', 'Authorization', 'Origin', 'Accept', 'Content-Type'];
/** A Handle server knows none; named only where they are asked for, so that other answers stay as it gives them. */
const CONDITIONS = ['If-Match', 'If-None-Match'];
const MAX_AGE_SECONDS = 86_400;

/** Response headers that scripts may read unasked (Fetch standard), and those of CORS itself. */
const NOT_EXPOSED =
  /^(cache-control|content-language|content-type|expires|last-modified|pragma|vary|access-control-.*)$/i;

/** Echoes any Origin; credentials are never allowed, so nothing of a browser's own is at risk. */
export function cors(req: Request, res: Response, next: NextFunction): void {
  const { origin } = req.headers;
  if (origin !== undefined) res.setHeader(ALLOW_ORIGIN, origin);
  next();
}

/** Lets scripts read the headers that a reply carries. To be called when all are set. */
export function exposeHeaders(res: Response): void {
  if (!res.hasHeader(ALLOW_ORIGIN)) return;
  res.setHeader(EXPOSE_HEADERS, exposedOf(res.getHeaderNames()));
}

/** The headers of a reply, names and values, with what both functions above would add to them. */
export function withCors(headers: string[], origin: string | undefined): string[] {
  if (origin === undefined) return headers;
  const names = headers.filter((_, at) => at % 2 === 0);
  return [ALLOW_ORIGIN, origin, ...headers, EXPOSE_HEADERS, exposedOf(names)];
}

/** The same for a prepared answer. */
export function linesWithCors(lines: HeaderLines, origin: string): HeaderLines {
  const names = (lines.match(/^[^:\r\n]+/gm) ?? []).join();
  let exposed = exposedByNames.get(names);
  if (exposed === undefined) {
    exposed = linesOf([EXPOSE_HEADERS, exposedOf(names.split(','))]);
    exposedByNames.set(names, exposed);
  }
  return (linesOf([ALLOW_ORIGIN, origin]) + lines + exposed) as HeaderLines;
}

/** Prepared answers have few sets of headers. */
const exposedByNames = new Map<string, HeaderLines>();

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

/** OPTIONS: what may be asked, or a preflight. */
export function answerOptions(req: Request, res: Response): void {
  if (isPreflight(req)) {
    const asked = req.headers['access-control-request-headers']?.toLowerCase() ?? '';
    answerPreflight(
      req,
      res,
      CONDITIONS.filter((name) => asked.includes(name.toLowerCase())),
    );
    return;
  }
  res.setHeader('Allow', 'GET, HEAD, POST, PUT, DELETE, OPTIONS');
  endEmpty(res);
}

export const isPreflight = ({ headers }: Request): boolean =>
  headers.origin !== undefined && headers['access-control-request-method'] !== undefined;

/** One that asks for something not allowed gets 200 without any CORS header. `more` headers are allowed too. */
export function answerPreflight(req: Request, res: Response, more: readonly string[] = []): void {
  const method = req.headers['access-control-request-method'] ?? '';
  const allowed = [...HEADERS, ...more];
  const asked = (req.headers['access-control-request-headers'] ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase());
  const known = new Set(['', ...allowed.map((name) => name.toLowerCase())]);
  if (METHODS.includes(method) && asked.every((name) => known.has(name))) {
    res.setHeader('Access-Control-Max-Age', String(MAX_AGE_SECONDS));
    res.setHeader('Access-Control-Allow-Methods', METHODS.join(','));
    res.setHeader('Access-Control-Allow-Headers', allowed.join(','));
  } else {
    res.removeHeader(ALLOW_ORIGIN);
  }
  endEmpty(res);
}

function endEmpty(res: Response): void {
  res.setHeader('Vary', 'Origin');
  res.setHeader('Content-Length', '0');
  res.status(200).end();
}
