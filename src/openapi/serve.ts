// Serves the document as JSON and as a page.
import type { Request, RequestHandler, Response } from 'express';
import type { PageBranding } from '../html/layout.js';
import { createPageSender } from '../html/send.js';
import { readParameters } from '../http/query.js';
import { readTarget } from '../http/target.js';
import type { OpenApiDocument } from './document.js';
import { documentPage, tryUrl } from './page.js';

interface OpenApiDeps {
  document: OpenApiDocument;
  branding: PageBranding;
  gzipMinBytes: number;
  cacheControl: string;
}

export function createOpenApiRoute(deps: OpenApiDeps): RequestHandler {
  const { document, branding, gzipMinBytes, cacheControl } = deps;
  const headers = { 'Cache-Control': cacheControl };
  const text = JSON.stringify(document);
  const page = documentPage(document);
  const sender = createPageSender(branding, gzipMinBytes);
  return async function openApiRoute(req: Request, res: Response): Promise<void> {
    const { path, query } = readTarget(req.url);
    const url = tryUrl(document, readParameters(query));
    if (url !== undefined) {
      res.setHeader('Cache-Control', 'no-store');
      res.redirect(303, url);
    } else if (path.endsWith('.json')) {
      await sender.sendText(req, res, { contentType: 'application/json;charset=utf-8', text, headers });
    } else {
      await sender.sendPage(req, res, { page, headers });
    }
  };
}
