// Controls this process for the admin API: purge, inspection, report, log level.
import { VERSION } from '../config/package-files.js';
import type { CacheCopy, ProcessControl, PurgeRequest } from '../admin/operations.js';
import type { Cache } from '../cache/cache.js';
import type { Coordination } from '../coordination/coordination.js';
import { type Entry, encodeEntry } from '../cache/entry.js';
import { judge } from '../cache/policy.js';
import type { EventLoop } from '../observe/health.js';
import type { Resolver } from '../resolver/resolver.js';
import { sumUsages } from '../upstream/concurrency-limiter.js';
import { networkNamed } from './traffic.js';
import type { Upstreams } from './upstreams.js';
import type { Restoring } from './restoring.js';
import type { SharedDeps } from './shared-deps.js';

interface Controlled {
  cache: Cache;
  resolver: Resolver<unknown>;
  eventLoop: EventLoop;
  restoring: Pick<Restoring, 'importLines' | 'exportPage'>;
  upstreams: Pick<Upstreams, 'servers'>;
  coordination: Pick<Coordination, 'limitedNetworks'>;
}

const MAX_CONCURRENT_PURGES = 200;

export function createProcessControl(shared: SharedDeps, controlled: Controlled): ProcessControl {
  const { logger, metrics, activity } = shared;
  const { cache, resolver, eventLoop, upstreams, restoring, coordination } = controlled;
  return {
    async purge(request) {
      await purge(resolver, request);
      return { isShared: cache.redisState() !== 'away' };
    },
    inspect: (handle) => inspect(resolver.keyOf(handle), cache, shared.now),
    report() {
      const { rss, heapUsed } = process.memoryUsage();
      const { running, waiting } = sumUsages(
        upstreams.servers.flatMap(({ usage }) => Object.values(usage())),
      );
      return Promise.resolve({
        version: VERSION,
        pid: process.pid,
        memory: cache.memory.usage(),
        process: { rssBytes: rss, heapUsedBytes: heapUsed, eventLoopDelayMs: eventLoop.delayMs() },
        redis: cache.redisState(),
        running,
        waiting,
        logLevel: logger.level,
        activity: activity.report(),
      });
    },
    traffic() {
      const { rules } = shared.config.traffic;
      const limited = coordination.limitedNetworks.list();
      return Promise.resolve({ ...shared.trafficActivity.report(rules), limited });
    },
    async unblock(given) {
      const network = networkNamed(given);
      return network !== undefined && coordination.limitedNetworks.lift(network);
    },
    setLogLevel(level) {
      logger.level = level;
      return Promise.resolve();
    },
    importLines: (text) => Promise.resolve(restoring.importLines(text)),
    exportPage: (page) => Promise.resolve(restoring.exportPage(page)),
    metrics: () => metrics.registry.getMetricsAsJSON(),
  };
}

async function purge(resolver: Resolver<unknown>, request: PurgeRequest): Promise<void> {
  const { isSoft } = request;
  if ('prefix' in request) {
    await resolver.purge({ prefix: request.prefix }, { isSoft });
    return;
  }
  const { handles } = request;
  for (let at = 0; at < handles.length; at += MAX_CONCURRENT_PURGES) {
    const batch = handles.slice(at, at + MAX_CONCURRENT_PURGES);
    await Promise.all(batch.map((handle) => resolver.purge({ handle }, { isSoft })));
  }
}

async function inspect(key: string, cache: Cache, now: () => number): Promise<CacheCopy[]> {
  const { memory, redis } = await cache.inspect(key);
  const stateOf = (entry: Entry) => entryState(entry, now(), cache.trustedSince());
  const copies: CacheCopy[] = [];
  if (memory) {
    const { entry, bytes, hits } = memory;
    copies.push({ tier: 'memory', pid: process.pid, bytes, hits, ...stateOf(entry) });
  }
  if (redis) copies.push({ tier: 'redis', bytes: encodeEntry(key, redis).length, ...stateOf(redis) });
  return copies;
}

function entryState(entry: Entry, now: number, trustedSince: ReturnType<Cache['trustedSince']>) {
  const seconds = (ms: number): number => Math.max(0, Math.round(ms / 1000));
  const use = judge(entry, now, trustedSince);
  return {
    kind: entry.kind,
    use,
    ageSeconds: seconds(now - entry.requestedAt),
    lifeLeftSeconds: use === 'fresh' ? seconds(entry.staleAt - now) : 0,
    standInLeftSeconds: seconds(entry.deleteAt - now),
  };
}
