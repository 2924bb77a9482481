// Makes the description of the interface, of what this configuration offers.
import { readFileSync } from 'node:fs';

import type { PipelineDeps } from '../record/pipeline.js';
import { openApiDocument } from '../openapi/document.js';
import { createOpenApiRoute } from '../openapi/routes.js';
import type { Parts } from './parts.js';

export function makeOpenApi({ config }: Pick<Parts, 'config'>): PipelineDeps['openApi'] {
  const { title, logoUrl, footer, footerUrl } = config.page;
  return createOpenApiRoute({
    document: openApiDocument({
      version: versionOfPackage(),
      title,
      has: { v2: config.v2.enabled, redirect: config.redirect.enabled },
      admin: config.admin,
    }),
    house: {
      title,
      logoUrl: logoUrl ?? undefined,
      footer: footer ?? undefined,
      footerUrl: footerUrl ?? undefined,
    },
    gzipMinBytes: config.http.gzipMinBytes,
  });
}

/** The same place from src and from dist. */
function versionOfPackage(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
