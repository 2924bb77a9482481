// Creates the OpenAPI document of this configuration and its route.
import { readFileSync } from 'node:fs';
import { openApiDocument } from '../openapi/document.js';
import { createOpenApiRoute } from '../openapi/routes.js';
import type { PipelineDeps } from '../record/pipeline.js';
import type { Parts } from './parts.js';
import { siteOf } from './site.js';

export function makeOpenApi({ config }: Pick<Parts, 'config'>): PipelineDeps['openApi'] {
  const document = openApiDocument({
    version: packageVersion(),
    title: config.page.title,
    has: { v2: config.v2.enabled, redirect: config.redirect.enabled },
    admin: config.admin,
  });
  return createOpenApiRoute({ document, site: siteOf(config), gzipMinBytes: config.http.gzipMinBytes });
}

/** The path is the same from src and from dist. */
function packageVersion(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
