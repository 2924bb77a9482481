// Sends pages and redirects: headers for caches, for scripts, and against what a page must not do.
import type { Request, Response } from 'express';
import { VARY } from '../http/cache-headers.js';
import { exposeHeaders } from '../http/cors.js';
import { type Representation, matchesEtag, represent } from '../http/representation.js';
import { escapeText } from './html.js';

export interface Sending {
  status: number;
  contentType: string;
  text: string;
  headers: Record<string, string>;
  /** The answer would be another one for another Accept. */
  variesByAccept: boolean;
}

export const HTML_TYPE = 'text/html;charset=utf-8';

/** Sends a text as it is negotiated; a 200 that the client has already is a 304. */
export async function sendText(
  req: Request,
  res: Response,
  { status, contentType, text, headers, variesByAccept, gzipMinBytes }: Sending & { gzipMinBytes: number },
): Promise<void> {
  const content = { bytes: Buffer.from(text), contentType, hasEtag: status === 200 };
  const acceptEncoding = req.headers['accept-encoding']?.toString();
  const made = await represent(content, { acceptEncoding, gzipMinBytes });
  setAll(res, [...Object.entries(headers).flat(), ...made.common, 'X-Content-Type-Options', 'nosniff']);
  if (variesByAccept) res.setHeader('Vary', varyOf(variesByAccept));
  const isKnown = made.etag !== undefined && matchesEtag(req.headers['if-none-match'], made.etag);
  if (!isKnown) setAll(res, made.ofBody);
  exposeHeaders(res);
  if (isKnown) res.status(304).end();
  else res.status(status).end(made.body);
}

export interface Redirect {
  status: number;
  url: string;
  /** Headers that change with time. */
  told: Record<string, string>;
  expires: string;
  variesByAccept: boolean;
}

/**
 * Sends a redirect and gives back what was made of it. A short text with a link goes with it for those
 * who do not follow (RFC 9110 section 15.4).
 */
export function sendRedirect(
  res: Response,
  { status, url, told, expires, variesByAccept }: Redirect,
): Representation {
  const link = escapeText(url);
  const body = Buffer.from(`<!doctype html><title>Handle Redirect</title><a href="${link}">${link}</a>\n`);
  const made: Representation = {
    encoding: 'identity',
    isWorthGzip: false,
    body,
    etag: undefined,
    common: ['Vary', varyOf(variesByAccept), 'Location', url, 'Expires', expires],
    ofBody: ['Content-Type', HTML_TYPE, 'Content-Length', String(body.length)],
  };
  setAll(res, [...Object.entries(told).flat(), ...made.common, ...made.ofBody]);
  exposeHeaders(res);
  res.status(status).end(body);
  return made;
}

const varyOf = (variesByAccept: boolean): string => (variesByAccept ? `Accept, ${VARY}` : VARY);

function setAll(res: Response, headers: readonly string[]): void {
  for (let at = 0; at < headers.length; at += 2) res.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
}
