// Serves the OpenAPI document as JSON and as a page.
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { VERSION } from '../config/package-files.js';
import type { Config } from '../config/schema.js';
import { brandingOf } from '../html/layout.js';
import { createPageSender } from '../html/send.js';
import { readParameters } from '../http/query.js';
import { type Route, defineRoutes } from '../http/route-table.js';
import { anyObject, json } from '../http/schemas.js';
import { readTarget } from '../http/target.js';
import { createDocument } from './document.js';
import { documentPage, tryUrl } from './page.js';

export const openApiRoutes = (group: Pick<Route, 'interface' | 'tag'>) =>
  defineRoutes(
    { ...group, handler: 'openApi', errors: ['METHOD_NOT_ALLOWED'] },
    {
      'GET /openapi': {
        id: 'readDescriptionPage',
        summary: 'Show this API reference as a page',
        responses: {
          200: { description: 'The page', content: { 'text/html': z.string() } },
          303: 'Redirect to the operation of a submitted form',
          304: 'Not modified',
        },
      },
      'GET /openapi.json': {
        id: 'readDescription',
        summary: 'Read the OpenAPI document',
        responses: { 200: json('The OpenAPI document', anyObject), 304: 'Not modified' },
      },
    },
  );

interface OpenApiParts {
  /** The routes to describe. */
  routes: readonly Route[];
  summary: string;
  cacheControl: string;
}

export function createOpenApi(
  config: Pick<Config, 'page' | 'http' | 'upstreams' | 'v2'>,
  { routes, summary, cacheControl }: OpenApiParts,
): RequestHandler {
  const document = createDocument({ version: VERSION, title: config.page.title, summary }, routes);
  const headers = { 'Cache-Control': cacheControl };
  const text = JSON.stringify(document);
  const page = documentPage(document);
  const sender = createPageSender(brandingOf(config), config.http.gzipMinBytes);
  return async function openApi(req: Request, res: Response): Promise<void> {
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
