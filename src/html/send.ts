// Sends text, pages and redirects, with caching and security headers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { toBytes } from '../handle/bytes.js';
import { varyOf } from '../http/cache-headers.js';
import { type TextReply, endOfTurn, sendMade, sendText, type Representation } from '../http/reply.js';
import { escapeText, type PageBranding, type SitePage, createPageLayout } from './html.js';

export const HTML_TYPE = 'text/html;charset=utf-8';

/** Status is 200 by default. */
export type TextResponse = Omit<TextReply, 'status' | 'gzipMinBytes'> & { status?: number };

type PageResponse = Omit<TextResponse, 'contentType' | 'text'> & { page: SitePage };

interface RedirectResponse {
  status: number;
  /** Headers whose values change with time. */
  headers: Record<string, string>;
  made: Representation;
}

export interface TextSender {
  gzipMinBytes: number;
  /** Sends text, or 304 if the client has the current ETag. */
  sendText: (req: IncomingMessage, res: ServerResponse, response: TextResponse) => Promise<void>;
  sendRedirect: (req: IncomingMessage, res: ServerResponse, response: RedirectResponse) => Promise<void>;
}

export function createTextSender(gzipMinBytes: number): TextSender {
  return {
    gzipMinBytes,
    sendText: (req, res, response) => sendText(req, res, { status: 200, gzipMinBytes, ...response }),
    async sendRedirect(req, res, { status, headers, made }) {
      await endOfTurn();
      sendMade(req, res, { status, headers }, made);
    },
  };
}

/** Sends pages with the configured branding. */
interface PageSender extends Pick<TextSender, 'sendText'> {
  /** Sends a page with the security headers. */
  sendPage: (req: IncomingMessage, res: ServerResponse, response: PageResponse) => Promise<void>;
}

export function createPageSender(branding: PageBranding, gzipMinBytes: number): PageSender {
  const { renderPage, securityHeaders } = createPageLayout(branding);
  const { sendText } = createTextSender(gzipMinBytes);
  return {
    sendText,
    sendPage: (req, res, { page, headers, ...response }) =>
      sendText(req, res, {
        ...response,
        contentType: HTML_TYPE,
        text: renderPage(page),
        headers: { ...securityHeaders, ...headers },
      }),
  };
}

interface RedirectTo {
  url: string;
  /** Request headers that affect the URL. */
  varies?: readonly string[];
  /** Additional response headers; names may repeat. */
  lines?: readonly (readonly [name: string, value: string])[];
}

/** Represents a redirect, with a link to the target in the body, as RFC 9110 §15.4 recommends. */
export function representRedirect({ url, varies = [], lines = [] }: RedirectTo): Representation {
  const link = escapeText(url);
  const body = toBytes(`<!doctype html><title>Handle Redirect</title><a href="${link}">${link}</a>\n`);
  return {
    encoding: 'identity',
    isWorthGzip: false,
    body,
    etag: undefined,
    common: ['Vary', varyOf(varies), 'Location', url, ...lines.flat()],
    ofBody: ['Content-Type', HTML_TYPE, 'Content-Length', String(body.length)],
  };
}
