// Serves the OpenAPI document as JSON and as a page.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { VERSION } from '../config/package-files.js';
import type { Config } from '../config/schema.js';
import { type SitePage, brandingOf } from '../html/layout.js';
import { createPageSender } from '../html/send.js';
import { contextOf, hasContext } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { type Listener, type Route, defineRoutes } from '../http/route-table.js';
import { NOSNIFF } from '../http/raw-response.js';
import { anyObject, json } from '../http/schemas.js';
import { readTarget } from '../http/target.js';
import { type OpenApiDocument, createDocument } from './document.js';
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

interface Description {
  document: OpenApiDocument;
  text: string;
  page: SitePage;
}

/** The last description of each list of routes: most reloads keep both the routes and the title. */
const descriptions = new WeakMap<readonly Route[], Description>();

function describe(title: string, { routes, summary }: OpenApiParts): Description {
  const known = descriptions.get(routes);
  if (known?.document.info.title === title) return known;
  const document = createDocument({ version: VERSION, title, summary }, routes);
  const description = { document, text: JSON.stringify(document), page: documentPage(document) };
  descriptions.set(routes, description);
  return description;
}

export function createOpenApi(
  config: Pick<Config, 'page' | 'http' | 'upstreams' | 'v2'>,
  parts: OpenApiParts,
): Listener {
  const { document, text, page } = describe(config.page.title, parts);
  const headers = { 'Cache-Control': parts.cacheControl };
  const sender = createPageSender(brandingOf(config), config.http.gzipMinBytes);
  return async function openApi(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { path, query } = hasContext(res) ? contextOf(res).target : readTarget(req.url ?? '');
    const url = tryUrl(document, readParameters(query));
    if (url !== undefined) {
      res.writeHead(303, { 'Cache-Control': 'no-store', Location: url, ...NOSNIFF }).end();
    } else if (path.endsWith('.json')) {
      await sender.sendText(req, res, { contentType: 'application/json;charset=utf-8', text, headers });
    } else {
      await sender.sendPage(req, res, { page, headers });
    }
  };
}
