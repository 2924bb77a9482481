// Creates the description of each listener, and of no other.
import type { AdminDeps } from '../admin/app.js';
import { VERSION } from '../config/package-files.js';
import type { Config } from '../config/schema.js';
import type { PageBranding } from '../html/layout.js';
import type { Route } from '../http/route-table.js';
import { createDocument } from '../openapi/document.js';
import { createOpenApiRoute } from '../openapi/serve.js';

const SUMMARIES = {
  public: 'Resolve and write persistent identifiers through a caching proxy.',
  admin: 'Operate a caching proxy for persistent identifiers.',
};

export function makePublicOpenApi(
  { page, http }: Config,
  routes: readonly Route[],
  branding: PageBranding,
): AdminDeps['openApi'] {
  const info = { version: VERSION, title: page.title, summary: SUMMARIES.public };
  return createOpenApiRoute({
    document: createDocument(info, routes),
    branding,
    gzipMinBytes: http.gzipMinBytes,
    // Short, because an update of the proxy may change the document.
    cacheControl: 'public, max-age=300',
  });
}

export function makeAdminOpenApi({ page, http }: Config, routes: readonly Route[]): AdminDeps['openApi'] {
  const info = { version: VERSION, title: page.title, summary: SUMMARIES.admin };
  return createOpenApiRoute({
    document: createDocument(info, routes),
    branding: page,
    gzipMinBytes: http.gzipMinBytes,
    cacheControl: 'no-store',
  });
}
