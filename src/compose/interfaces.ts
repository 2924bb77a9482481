// Creates the interfaces beside the record interface: ePIC v2, batches.
import type { Coordination } from '../coordination/coordination.js';
import type { Config } from '../config/schema.js';
import { freshnessRules } from '../http/cache-headers.js';
import { createReportUnexpected } from '../http/error-reply.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { type BatchDeps, type BatchHandlers, createBatch } from '../record/batch/answer.js';
import { createStreamElements } from '../record/batch/stream.js';
import type { Resolver } from '../resolver/resolver.js';
import type { ReverseLookup } from '../upstream/reverse-lookup.js';
import type { V2Deps, V2Settings } from '../v2/call.js';
import { type V2Interface, createV2 } from '../v2/answer.js';
import type { SharedDeps } from './shared-deps.js';
import type { Upstreams } from '../upstream/upstreams.js';

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

interface V2Backends extends Pick<V2Deps, 'resolver' | 'originOf' | 'carryOut' | 'withBody' | 'runStepsOf'> {
  coordination: Pick<Coordination, 'unclaimed'>;
  reverse?: { lookup: ReverseLookup };
}

export function makeV2(shared: SharedDeps, backends: V2Backends): V2Interface {
  const { config, metrics, now } = shared;
  const { coordination, reverse } = backends;
  return createV2({
    ...backends,
    settings: settingsOf(config),
    unclaimed: coordination.unclaimed,
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
