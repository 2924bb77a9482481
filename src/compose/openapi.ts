// Creates the description of each listener, and of no other.
import type { AdminDeps } from '../admin/app.js';
import { VERSION } from '../config/package-files.js';
import type { Config } from '../config/schema.js';
import type { PageBranding } from '../html/layout.js';
import { adminDocument, publicDocument } from '../openapi/document.js';
import { createOpenApiRoute } from '../openapi/routes.js';
import type { PipelineDeps } from '../record/pipeline.js';

export function makePublicOpenApi(config: Config, branding: PageBranding): PipelineDeps['openApi'] {
  const { batch, v2, redirect, reverseLookup, native } = config;
  const { gzipMinBytes } = config.http;
  const document = publicDocument({
    ...infoOf(config),
    has: {
      batch: batch.enabled,
      v2: v2.enabled,
      redirect: redirect.enabled,
      reverseLookup: reverseLookup.url !== undefined,
      tunnel: native.tunnel,
    },
  });
  // Short, because an update of the proxy may change the document.
  return createOpenApiRoute({ document, branding, gzipMinBytes, cacheControl: 'public, max-age=300' });
}

export function makeAdminOpenApi(config: Config): AdminDeps['openApi'] {
  const { gzipMinBytes } = config.http;
  const document = adminDocument(infoOf(config));
  return createOpenApiRoute({ document, branding: config.page, gzipMinBytes, cacheControl: 'no-store' });
}

const infoOf = ({ page }: Config) => ({ version: VERSION, title: page.title });
