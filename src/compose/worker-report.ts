// What one process does and tells for its operator.
import type { Copy, Member, PurgeOrder } from '../admin/operations.js';
import type { Cache } from '../cache/cache.js';
import { type Entry, encodeEntry } from '../cache/entry.js';
import { judge } from '../cache/policy.js';
import type { EventLoop } from '../observe/event-loop.js';
import type { Resolver } from '../resolver/resolver.js';
import type { GateUse } from '../upstream/concurrency-limiter.js';
import type { Parts } from './parts.js';

export interface MemberParts {
  cache: Cache;
  resolver: Resolver<unknown>;
  eventLoop: EventLoop;
  uses: () => GateUse[];
}

/** So many handles are purged at the same time. */
const PURGED_AT_A_TIME = 200;

export function makeMember(parts: Parts, { cache, resolver, eventLoop, uses }: MemberParts): Member {
  const { logger, metrics, activity } = parts;
  const copyOf = createCopyOf(parts, cache);
  return {
    async purge(order) {
      await purge(resolver, order);
      return { isShared: cache.redisState() !== 'away' };
    },
    async look(handle) {
      const key = resolver.keyOf(handle);
      const { memory, redis } = await cache.inspect(key);
      return [
        ...(memory
          ? [
              copyOf(memory.entry, {
                tier: 'memory',
                pid: process.pid,
                bytes: memory.bytes,
                hits: memory.hits,
              }),
            ]
          : []),
        ...(redis ? [copyOf(redis, { tier: 'redis', bytes: encodeEntry(key, redis).length })] : []),
      ];
    },
    report() {
      const { rss, heapUsed } = process.memoryUsage();
      const used = uses();
      return Promise.resolve({
        pid: process.pid,
        memory: cache.memory.usage(),
        process: { rssBytes: rss, heapUsedBytes: heapUsed, eventLoopDelayMs: eventLoop.delayMs() },
        redis: cache.redisState(),
        running: used.reduce((sum, { running }) => sum + running, 0),
        waiting: used.reduce((sum, { waiting }) => sum + waiting, 0),
        logLevel: logger.level,
        activity: activity.report(),
      });
    },
    setLogLevel(level) {
      logger.level = level;
      return Promise.resolve();
    },
    metrics: () => metrics.registry.getMetricsAsJSON(),
  };
}

async function purge(resolver: Resolver<unknown>, order: PurgeOrder): Promise<void> {
  const { isSoft } = order;
  if ('prefix' in order) {
    await resolver.purge({ prefix: order.prefix }, { isSoft });
    return;
  }
  for (let at = 0; at < order.handles.length; at += PURGED_AT_A_TIME) {
    const some = order.handles.slice(at, at + PURGED_AT_A_TIME);
    await Promise.all(some.map((handle) => resolver.purge({ handle }, { isSoft })));
  }
}

function createCopyOf({ now }: Parts, cache: Cache) {
  const seconds = (ms: number): number => Math.max(0, Math.round(ms / 1000));
  return function copyOf(entry: Entry, more: Pick<Copy, 'tier' | 'pid' | 'bytes' | 'hits'>): Copy {
    const at = now();
    const use = judge(entry, at, cache.trustedSince());
    return {
      ...more,
      kind: entry.kind,
      use,
      ageSeconds: seconds(at - entry.cachedAt),
      lifeLeftSeconds: use === 'fresh' ? seconds(entry.staleAt - at) : 0,
      standInLeftSeconds: seconds(entry.deleteAt - at),
    };
  };
}
