// Serves the document, as JSON for programs and as a page for people.
import type { Request, RequestHandler, Response } from 'express';
import { contextOf } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { type House, layOut } from '../html/layout.js';
import { contentSecurityPolicy } from '../html/style.js';
import { HTML_TYPE, sendText } from '../html/send-page.js';
import type { OpenApiDocument } from './document.js';
import { documentPage, triedTarget } from './page.js';

export interface OpenApiDeps {
  document: OpenApiDocument;
  house: House;
  gzipMinBytes: number;
}

/** Long enough for one reading; after an update nobody reads the old one for long. */
const CACHE_CONTROL = 'public, max-age=300';

export function createOpenApiRoute({ document, house, gzipMinBytes }: OpenApiDeps): RequestHandler {
  const json = JSON.stringify(document);
  const page = layOut(documentPage(document), house);
  const pageHeaders = {
    'Content-Security-Policy': contentSecurityPolicy(house.logoUrl),
    'Referrer-Policy': 'no-referrer',
  };
  return async function openApiRoute(req: Request, res: Response): Promise<void> {
    const { path, query } = contextOf(res).target;
    const tried = triedTarget(document, readParameters(query));
    if (tried !== undefined) {
      res.setHeader('Cache-Control', 'no-store');
      res.redirect(303, tried);
      return;
    }
    const shown = path.endsWith('.json')
      ? { contentType: 'application/json;charset=utf-8', text: json, headers: {} }
      : { contentType: HTML_TYPE, text: page, headers: pageHeaders };
    const headers = { ...shown.headers, 'Cache-Control': CACHE_CONTROL };
    await sendText(req, res, { ...shown, headers, status: 200, variesByAccept: false, gzipMinBytes });
  };
}
