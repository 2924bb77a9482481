// Creates the interfaces beside the record interface: redirects and pages, ePIC v2, OpenAPI.
import { readFileSync } from 'node:fs';
import type { Coordination } from '../coordination/coordination.js';
import type { Config } from '../config/schema.js';
import { openApiDocument } from '../openapi/document.js';
import { createOpenApiRoute } from '../openapi/routes.js';
import { allowsDeletion } from '../record/deletion.js';
import type { PipelineDeps } from '../record/pipeline.js';
import type { Hit } from '../record/response-cache.js';
import { type RedirectInterface, createRedirect } from '../redirect/redirect.js';
import type { Resolver } from '../resolver/resolver.js';
import type { ReverseLookup } from '../upstream/reverse-lookup.js';
import type { V2Deps, V2Settings } from '../v2/deps.js';
import { type V2Routes, createV2Routes } from '../v2/routes.js';
import { type SharedDeps, reportUnexpected } from './shared-deps.js';

export function makeRedirect(
  { config, logger, metrics, now }: SharedDeps,
  { resolver, onHit }: { resolver: Resolver<unknown>; onHit: (hit: Hit) => unknown },
): RedirectInterface {
  return createRedirect({
    resolve: (handle, options) => resolver.resolve(handle, options),
    keyOf: (handle) => resolver.keyOf(handle),
    allowedHosts: config.redirect.allowedHosts,
    branding: config.page,
    clientMaxAgeMs: config.http.clientMaxAge,
    gzipMinBytes: config.http.gzipMinBytes,
    onStale: metrics.countStale,
    onHit,
    onUnexpected: reportUnexpected({ logger, metrics }),
    now,
    random: Math.random,
  });
}

interface V2Backends extends Pick<V2Deps, 'records' | 'withBody' | 'lock'> {
  resolver: Resolver<unknown>;
  coordination: Pick<Coordination, 'unclaimed'>;
  reverse?: { lookup: ReverseLookup };
}

export function makeV2(shared: SharedDeps, backends: V2Backends): V2Routes {
  const { config, metrics, now } = shared;
  const { resolver, coordination, records, withBody, lock, reverse } = backends;
  return createV2Routes({
    settings: settingsOf(config),
    withBody,
    records,
    resolver,
    lock,
    unclaimed: coordination.unclaimed,
    mayDelete: (handle) => allowsDeletion(config.deletion, 'handle', handle),
    ...(reverse && { reverseLookup: reverse.lookup }),
    onStale: metrics.countStale,
    onUnexpected: reportUnexpected(shared),
    now,
  });
}

const settingsOf = ({ v2, http }: Config): V2Settings => ({
  ...v2,
  identities: new Map(v2.identities),
  maxBodyBytes: http.maxBodySize,
  clientMaxAgeMs: http.clientMaxAge,
});

export function makeOpenApi({ config }: Pick<SharedDeps, 'config'>): PipelineDeps['openApi'] {
  const document = openApiDocument({
    version: packageVersion(),
    title: config.page.title,
    has: { v2: config.v2.enabled, redirect: config.redirect.enabled },
    admin: config.admin,
  });
  return createOpenApiRoute({
    document,
    branding: config.page,
    gzipMinBytes: config.http.gzipMinBytes,
  });
}

/** The path is the same from src and from dist. */
function packageVersion(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
