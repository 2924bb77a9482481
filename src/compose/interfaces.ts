// Creates the interfaces beside the record interface: redirects and pages, ePIC v2, batches.
import type { Coordination } from '../coordination/coordination.js';
import type { Cache } from '../cache/cache.js';
import type { Config } from '../config/schema.js';
import type { PageBranding } from '../html/layout.js';
import { recordFreshness, redirectFreshness } from '../http/cache-headers.js';
import { createWithBody } from '../http/request-body.js';
import { createReportUnexpected } from '../http/error-reply.js';
import type { RefusalOfHandle } from '../http/guard.js';
import type { RunStepsOf } from '../http/request-work.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { type BatchDeps, type BatchHandlers, createBatch } from '../record/batch/answer.js';
import { createStreamElements } from '../record/batch/stream.js';
import { allowsDeletion } from '../record/deletion.js';
import type { Hit } from '../record/response-cache.js';
import type { FreshnessRules } from '../record/send.js';
import { createOtherRecords } from '../redirect/locations/other-records.js';
import { createPrefixRecords } from '../redirect/locations/prefix-records.js';
import { MAX_FORM_BYTES, type RedirectInterface, createRedirect } from '../redirect/redirect.js';
import { clientAddress, createProxyTrust } from '../server/client-address.js';
import type { ResolveOptions, Resolver } from '../resolver/resolver.js';
import type { ReverseLookup } from '../upstream/reverse-lookup.js';
import type { V2Settings, V2SharedDeps } from '../v2/deps.js';
import { type V2Interface, createV2 } from '../v2/answer.js';
import { openCountries } from '../redirect/countries.js';
import type { SharedDeps } from './shared-deps.js';
import type { Upstreams } from './upstreams.js';

export function freshnessRules({ http }: Config): FreshnessRules {
  const limits = { clientMaxAgeMs: http.clientMaxAgeMs, sharedMaxAgeMs: http.sharedMaxAgeMs };
  return { freshness: recordFreshness(limits), redirectFreshness: redirectFreshness(limits) };
}

interface RedirectBackends {
  resolver: Resolver<unknown>;
  cache: Pick<Cache, 'memory' | 'trustedSince'>;
  onHit: (hit: Hit) => unknown;
  runStepsOf: RunStepsOf;
  refusalOfHandle: RefusalOfHandle | undefined;
}

export function makeRedirect(
  { config, context, metrics, bodies, now }: SharedDeps,
  { resolver, cache, onHit, runStepsOf, refusalOfHandle }: RedirectBackends,
): RedirectInterface {
  const { allowedHosts, allowedHeaders, countryDatabase, prefixLocations } = config.redirect;
  const isTrusted = createProxyTrust(config.http.trustedProxies);
  const { memory, trustedSince } = cache;
  const records = {
    resolve: (handle: string, options: ResolveOptions) => resolver.resolve(handle, options),
    keyOf: (handle: string) => resolver.keyOf(handle),
  };
  const otherRecords = createOtherRecords({
    ...records,
    fromMemory: (handle) => resolver.fromMemory(handle),
    memory,
    trustedSince,
    retryAfterMs: config.upstream.retryAfterMs,
    now,
  });
  return createRedirect({
    ...records,
    target: { allowedHosts, allowedHeaders },
    otherRecords,
    prefixRecords: prefixLocations ? createPrefixRecords(otherRecords) : undefined,
    clientAddress: (req) => clientAddress(req, isTrusted),
    countryOf: countryDatabase === undefined ? undefined : openCountries(countryDatabase),
    branding: brandingOf(config),
    withBody: createWithBody({ maxBodyBytes: MAX_FORM_BYTES, budget: bodies }),
    ...freshnessRules(config),
    gzipMinBytes: config.http.gzipMinBytes,
    onStale: metrics.countStale,
    onHit,
    runStepsOf,
    refusalOfHandle,
    onUnexpected: createReportUnexpected(context),
    now,
    random: Math.random,
  });
}

export const brandingOf = (config: Config): PageBranding => ({
  ...config.page,
  examplePrefix: ownPrefix(config),
});

/** The first prefix of `upstreams` that has no wildcard and is no `0.…`, else the first of `v2.prefixes`. */
function ownPrefix({ upstreams, v2 }: Config): string | undefined {
  const isPlain = (pattern: string): boolean => !pattern.includes('*') && !pattern.startsWith('0.');
  return upstreams.flatMap(({ prefixes }) => prefixes).find(isPlain) ?? v2.prefixes[0];
}

interface BatchBackends extends Pick<BatchDeps, 'withBody' | 'charge' | 'refusalOfHandle' | 'runStepsOf'> {
  resolver: Resolver<unknown>;
  serverOf: Upstreams['serverOf'];
}

export function makeBatch(
  shared: SharedDeps,
  { resolver, withBody, charge, refusalOfHandle, serverOf, runStepsOf }: BatchBackends,
): BatchHandlers {
  const { http } = shared.config;
  // A batch may be for one server alone.
  const least = Math.min(...upstreamServers(shared.config).map(({ concurrency }) => concurrency));
  const part = (divisor: number): number => Math.max(1, Math.floor(least / divisor));
  return createBatch({
    // Single reads always have the other half.
    streamElements: createStreamElements({ perBatch: part(4), total: part(2), serverOf }),
    fromMemory: (handle) => resolver.fromMemory(handle),
    resolve: (handle, options) => resolver.resolve(handle, options),
    withBody,
    maxBodyBytes: http.maxBodyBytes,
    charge,
    refusalOfHandle,
    runStepsOf,
    gzipMinBytes: http.gzipMinBytes,
    onStale: shared.metrics.countStale,
    onElement: shared.metrics.countBatchHandle,
    onUnexpected: createReportUnexpected(shared.context),
  });
}

interface V2Backends extends Pick<V2SharedDeps, 'records' | 'withBody' | 'lock' | 'runStepsOf'> {
  resolver: Pick<Resolver<unknown>, 'resolve'>;
  fence: Resolver<unknown>['fence'];
  coordination: Pick<Coordination, 'unclaimed'>;
  reverse?: { lookup: ReverseLookup };
}

export function makeV2(shared: SharedDeps, backends: V2Backends): V2Interface {
  const { config, metrics, now } = shared;
  const { resolver, fence, coordination, records, withBody, lock, runStepsOf, reverse } = backends;
  return createV2({
    settings: settingsOf(config),
    withBody,
    records,
    runStepsOf,
    resolver: { resolve: (handle, options) => resolver.resolve(handle, options), fence },
    lock,
    unclaimed: coordination.unclaimed,
    mayDelete: (handle) => allowsDeletion(config.deletion, 'handle', handle),
    ...(reverse && { reverseLookup: reverse.lookup }),
    freshness: freshnessRules(config).freshness,
    onStale: metrics.countStale,
    onUnexpected: createReportUnexpected(shared.context),
    now,
  });
}

const settingsOf = ({ v2, http }: Config): V2Settings => ({
  ...v2,
  identities: new Map(v2.identities),
  maxBodyBytes: http.maxBodyBytes,
});
