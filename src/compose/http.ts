// Makes the public listener's handler: the hot path before the pipeline of Express.
import type { RequestListener } from 'node:http';
import type { Cache } from '../cache/cache.js';
import type { Coordination } from '../coordination/coordination.js';
import { lockAfterRead } from '../coordination/key-lock.js';
import { createDeletionGuard } from '../record/deletion.js';
import { createProxyTrust } from '../server/client-address.js';
import { createColdPath } from '../record/cold-path.js';
import { type Listener, guard } from '../http/guard.js';
import { type HotPath, type HotPathDeps, createHotPath } from '../record/hot-path.js';
import { type PipelineDeps, createPipeline } from '../record/pipeline.js';
import { type ResolveDeps, createResolveRoute } from '../record/resolve.js';
import { createWriteRoute } from '../record/write.js';
import { type RequestLog, createRequestLog } from '../http/request-log.js';
import { type RateLimit, createRateLimit } from '../server/rate-limit.js';
import { createScanHeaders } from '../http/fast-headers.js';
import { type HitLog, createHitLog } from '../observe/hit-log.js';
import type { Resolver } from '../resolver/resolver.js';
import type { ConcurrencyLimiter } from '../upstream/concurrency-limiter.js';
import type { Connections } from '../upstream/connections.js';
import { type Parts, reportUnexpected } from './parts.js';
import { makeOpenApi } from './openapi.js';
import { type Passing, makePassing } from './forwarding.js';
import { makeRedirect } from './redirect.js';
import { makeV2 } from './v2.js';

/** What it takes to answer a question about a record. */
type Asking = Omit<ResolveDeps, 'passThrough'>;

export interface HandlerParts {
  resolver: Resolver<unknown>;
  cache: Cache;
  coordination: Coordination;
  connections: Connections;
  /** Of forwarded requests. */
  limiter: ConcurrencyLimiter;
}

export interface Handler {
  handler: RequestListener;
  /** Makes anew what a reload may change; requests under way end as they began. */
  remake: () => void;
  /** Writes the log lines that are held back. */
  flush: () => void;
}

/** What a reload leaves alone. */
interface LastingParts extends HandlerParts, Passing {
  countHit: HotPathDeps['onAnswered'];
}

export function makeHandler(parts: Parts, made: HandlerParts): Handler {
  const hits = createHitLog(parts.logger, parts.now);
  const lasting = { ...made, ...makePassing(parts, made), countHit: makeHitCounter(parts, hits) };
  let listener = makeListener(parts, lasting);
  return {
    handler: (req, res) => {
      listener(req, res);
    },
    remake() {
      listener = makeListener(parts, lasting);
    },
    flush: hits.flush,
  };
}

function makeListener(parts: Parts, made: LastingParts): RequestListener {
  const isShort = parts.config.http.hotPath.enabled;
  const scanHeaders = createScanHeaders(parts.pseudonym);
  const hotPath = isShort ? makeHotPath(parts, { ...made, scanHeaders }) : undefined;
  const rateLimit = makeRateLimit(parts, made.coordination);
  const requestLog = makeRequestLog(parts);
  const asking = makeAsking(parts, made, (hit) => hotPath?.offer(hit));
  const pipeline = makePipeline(parts, { ...made, asking, requestLog, refusalOf: rateLimit?.refusalOf });
  const onUnexpected = reportUnexpected(parts);
  // With a guard of its own: the cold path comes here when it has returned already.
  const longWay = guard(pipeline, onUnexpected);
  const coldPath = isShort ? createColdPath({ ...asking, requestLog, scanHeaders, longWay }) : undefined;
  const handler: Listener = (req, res) => {
    // One too many is refused by the pipeline, hit or not.
    const isRefused = rateLimit?.refusalOf(req) !== undefined;
    if (!isRefused && (hotPath?.answer(req, res) || coldPath?.(req, res))) return;
    longWay(req, res);
  };
  const whole = rateLimit?.wrap(handler) ?? handler;
  return guard(parts.tracer?.around(whole) ?? whole, onUnexpected);
}

function makeRequestLog({ metrics, activity, logger, tracer }: Parts): RequestLog {
  return createRequestLog({
    currentTrace: tracer?.current,
    onAnswered(request) {
      metrics.requestAnswered(request);
      activity.answered(request);
      if (request.status >= 500) activity.failed(`${request.status} for ${request.handle ?? request.path}`);
      logger.info(request, 'request');
    },
  });
}

function makeAsking(
  { config, metrics, now }: Parts,
  { resolver }: HandlerParts,
  onHit: Asking['onHit'],
): Asking {
  return {
    resolve: (handle, options) => resolver.resolve(handle, options),
    onHit,
    clientMaxAgeMs: config.http.clientMaxAge,
    gzipMinBytes: config.http.gzipMinBytes,
    onStale: (reason) => {
      metrics.staleAnswered(reason);
    },
    now,
  };
}

function makeRateLimit({ config, metrics }: Parts, { count }: Coordination): RateLimit | undefined {
  const { rateLimit, trustedProxies } = config.http;
  if (rateLimit.perMinute === 0) return undefined;
  return createRateLimit({
    perMinute: rateLimit.perMinute,
    count,
    isTrusted: createProxyTrust(trustedProxies ?? []),
    onLimited: () => {
      metrics.rateLimited();
    },
  });
}

function makeHitCounter({ metrics, activity }: Parts, hits: HitLog): HotPathDeps['onAnswered'] {
  const counts = new Map<number, number>();
  metrics.beforeCollect(() => {
    for (const [status, count] of counts) {
      // The record interface never redirects.
      const family = status === 301 || status === 302 ? 'redirect' : 'record';
      metrics.requestAnswered({ family, result: 'hit', status, count });
    }
    counts.clear();
  });
  return function countHit(answered) {
    counts.set(answered.status, (counts.get(answered.status) ?? 0) + 1);
    activity.hit(answered.handle);
    hits.log(answered);
  };
}

function makeHotPath(
  { config, now }: Parts,
  { resolver, cache, countHit, scanHeaders }: LastingParts & Pick<HotPathDeps, 'scanHeaders'>,
): HotPath {
  const { maxEntries, maxBytes } = config.http.hotPath;
  return createHotPath({
    bounds: { maxEntries, maxBytes },
    scanHeaders,
    memory: cache.memory,
    keyOf: (handle) => resolver.keyOf(handle),
    clientMaxAgeMs: config.http.clientMaxAge,
    gzipMinBytes: config.http.gzipMinBytes,
    now,
    trustedSince: cache.trustedSince,
    onAnswered: countHit,
  });
}

interface PipelineParts extends LastingParts, Pick<PipelineDeps, 'refusalOf' | 'requestLog'> {
  asking: Asking;
}

function makePipeline(
  parts: Parts,
  { asking, requestLog, refusalOf, ...made }: PipelineParts,
): RequestListener {
  const { config, pseudonym } = parts;
  const { resolver, coordination, records, passThrough, withBody, forward, reverse } = made;
  const { resolve, onHit } = asking;
  const { allowedFor } = config.deletion;
  const rules = { ...config.deletion, allowedFor: allowedFor?.split(',') ?? [] };
  return createPipeline({
    maxRequestLineBytes: config.http.maxRequestLine,
    pseudonym,
    refusalOf,
    requestLog,
    passThrough,
    resolveRoute: createResolveRoute({ ...asking, passThrough }),
    deletionGuard: createDeletionGuard({ rules, resolve }),
    writeRoute: createWriteRoute({
      fence: (handle) => resolver.fence(handle),
      invalidate: (handle) => resolver.forget(handle),
      withBody,
      forward,
      conditional: {
        records,
        lock: (handle, work) => lockAfterRead(coordination.lock, resolver.keyOf(handle), work),
      },
    }),
    openApi: makeOpenApi(parts),
    ...(reverse && { reverseLookup: reverse.passThrough }),
    ...(config.v2.enabled && { v2: makeV2(parts, made) }),
    ...(config.redirect.enabled && { redirect: makeRedirect(parts, { resolver, onHit }) }),
    trustedProxies: config.http.trustedProxies ?? [],
    onUnexpected: reportUnexpected(parts),
  });
}
