// Sends texts, pages and redirects, with the headers for caches and scripts.
import type { Request, Response } from 'express';
import { toBytes } from '../handle/bytes.js';
import { VARY } from '../http/cache-headers.js';
import { exposeHeaders } from '../http/cors.js';
import { type Representation, matchesEtag, represent } from '../http/representation.js';
import { escapeText } from './html.js';
import { type PageBranding, type PageLayout, type SitePage, createPageLayout } from './layout.js';

export const HTML_TYPE = 'text/html;charset=utf-8';

interface TextResponse {
  /** 200 unless given. */
  status?: number;
  contentType: string;
  text: string;
  headers: Record<string, string>;
  /** Whether another Accept gets another response. */
  variesByAccept?: boolean;
}

type PageResponse = Omit<TextResponse, 'contentType' | 'text'> & { page: SitePage };

/** Sends pages with the configured branding. */
export interface PageSender extends PageLayout {
  branding: PageBranding;
  sendText: (req: Request, res: Response, response: TextResponse) => Promise<void>;
  /** Adds the security headers. */
  sendPage: (req: Request, res: Response, response: PageResponse) => Promise<void>;
}

export function createPageSender(branding: PageBranding, gzipMinBytes: number): PageSender {
  const layout = createPageLayout(branding);
  return {
    ...layout,
    branding,
    sendText: (req, res, response) => sendText(req, res, { ...response, gzipMinBytes }),
    sendPage: (req, res, { page, headers, ...response }) =>
      sendText(req, res, {
        ...response,
        contentType: HTML_TYPE,
        text: layout.renderPage(page),
        headers: { ...layout.securityHeaders, ...headers },
        gzipMinBytes,
      }),
  };
}

/** A 200 whose ETag the client has is a 304. */
async function sendText(
  req: Request,
  res: Response,
  response: TextResponse & { gzipMinBytes: number },
): Promise<void> {
  const { status = 200, contentType, text, headers, variesByAccept = false, gzipMinBytes } = response;
  const content = { text, contentType, hasEtag: status === 200 };
  const acceptEncoding = req.headers['accept-encoding']?.toString();
  const made = await represent(content, { acceptEncoding, gzipMinBytes });
  setHeaders(res, [...Object.entries(headers).flat(), ...made.common, 'X-Content-Type-Options', 'nosniff']);
  if (variesByAccept) res.setHeader('Vary', varyOf(['Accept']));
  const isNotModified = made.etag !== undefined && matchesEtag(req.headers['if-none-match'], made.etag);
  if (!isNotModified) setHeaders(res, made.ofBody);
  exposeHeaders(res);
  if (isNotModified) res.status(304).end();
  else res.status(status).end(made.body, 'latin1');
}

interface RedirectResponse {
  status: number;
  url: string;
  /** Headers that change with time. */
  headers: Record<string, string>;
  /** Request headers on which the URL depends. */
  varies?: readonly string[];
  /** Further headers; a name may come several times. */
  lines?: readonly (readonly [name: string, value: string])[];
}

/** Sends a redirect and returns its representation. The body is a link, as RFC 9110 section 15.4 advises. */
export function sendRedirect(
  res: Response,
  { status, url, headers, varies = [], lines = [] }: RedirectResponse,
): Representation {
  const link = escapeText(url);
  const body = toBytes(`<!doctype html><title>Handle Redirect</title><a href="${link}">${link}</a>\n`);
  const made: Representation = {
    encoding: 'identity',
    isWorthGzip: false,
    body,
    etag: undefined,
    common: ['Vary', varyOf(varies), 'Location', url, ...lines.flat()],
    ofBody: ['Content-Type', HTML_TYPE, 'Content-Length', String(body.length)],
  };
  setHeaders(res, [...Object.entries(headers).flat(), ...made.common, ...made.ofBody]);
  exposeHeaders(res);
  res.status(status).end(body, 'latin1');
  return made;
}

const varyOf = (varies: readonly string[]): string => [...varies, VARY].join(', ');

/** Replaces headers that are set already; a name that comes several times is sent as several lines. */
function setHeaders(res: Response, headers: readonly string[]): void {
  const set = new Set<string>();
  for (let at = 0; at < headers.length; at += 2) {
    const [name = '', value = ''] = headers.slice(at, at + 2);
    if (set.has(name.toLowerCase())) res.appendHeader(name, value);
    else res.setHeader(name, value);
    set.add(name.toLowerCase());
  }
}
