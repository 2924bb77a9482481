// Serves the OpenAPI document as JSON and as a page.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { VERSION } from '../config/package-files.js';
import type { Config } from '../config/schema.js';
import { type SitePage, brandingOf } from '../html/layout.js';
import { createPageSender } from '../html/send.js';
import { contextOf, hasContext } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { NOSNIFF } from '../http/raw-response.js';
import { type Interface, type Listener, type Route, defineRoutes } from '../http/route-table.js';
import { readTarget } from '../http/target.js';
import { type OpenApiDocument, type OpenApiFile, servedDocument } from './document.js';
import { documentPage, tryUrl } from './page.js';

export const openApiRoutes = (group: { interface?: Interface } = {}) =>
  defineRoutes(
    { ...group, handler: 'openApi' },
    { 'GET /openapi': 'readDescriptionPage', 'GET /openapi.json': 'readDescription' },
  );

/** The documents; not loaded before the first request for one. */
const LOAD = {
  public: () => import('../../config/openapi/public.yaml'),
  admin: () => import('../../config/openapi/admin.yaml'),
};

interface OpenApiParts {
  document: keyof typeof LOAD;
  /** The routes that are served. */
  routes: readonly Route[];
  cacheControl: string;
}

interface Description {
  document: OpenApiDocument;
  text: string;
  page: SitePage;
}

async function describe(title: string, { document: name, routes }: OpenApiParts): Promise<Description> {
  const { default: file } = await LOAD[name]();
  const document = servedDocument(file as OpenApiFile, routes, { title, version: VERSION });
  return { document, text: JSON.stringify(document), page: documentPage(document) };
}

export function createOpenApi(
  config: Pick<Config, 'page' | 'http' | 'upstreams' | 'v2'>,
  parts: OpenApiParts,
): Listener {
  const headers = { 'Cache-Control': parts.cacheControl };
  const sender = createPageSender(brandingOf(config), config.http.gzipMinBytes);
  let description: Promise<Description> | undefined;
  return async function openApi(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { document, text, page } = await (description ??= describe(config.page.title, parts));
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
