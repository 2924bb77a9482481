// The operations of an operator on the running proxy: purge, inspection, statistics, log level.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Entry, encodeEntry } from '../cache/entry.js';
import type { Cache } from '../cache/cache.js';
import { judge } from '../cache/policy.js';
import { VERSION } from '../config/package-files.js';
import type { LoggedChange } from '../handle/outcome.js';
import { readStatistics } from '../observe/statistics.js';
import type { Context } from '../context.js';
import type { CacheCopy, Operations, PurgeRequest } from '../host.js';
import type { Resolver } from '../resolver/resolver.js';
import { groupsOf } from '../time-slicer.js';
import type { RefOf } from '../upstream/routing.js';

const MAX_CONCURRENT_PURGES = 200;

/** Maximum changes recorded together: a queue for changes drops its oldest above 10,000, and several may be purging. */
const MAX_RECORDED = 1000;

interface OperatedParts extends Context {
  cache: Cache;
  resolver: Resolver;
  refOf: RefOf;
}

/** @internal `statistics` returns the members that plugins add to the statistics. */
export function createOperations(core: OperatedParts, statistics: () => object): Operations {
  const { log, metrics, hooks, cache, refOf } = core;
  const { now, wall } = core.clock;
  const [startedAt, startDate] = [now(), new Date(wall())];
  return {
    async purge(request) {
      try {
        await purge(core, request);
      } finally {
        // Also if a cache has not confirmed it, as for a write.
        for (const made of groupsOf(changesOf(request), MAX_RECORDED))
          await Promise.all(hooks.changed.map((record) => record(made)));
      }
      return { isShared: cache.redisState() !== 'down' };
    },
    inspect: (handle) => inspect(refOf(handle).key, cache, now),
    stats: () => {
      const facts = {
        version: VERSION,
        startedAt: startDate,
        redis: cache.redisState(),
        logLevel: log.level,
      };
      return Promise.resolve({ ...statistics(), ...readStatistics(metrics, facts, now() - startedAt) });
    },
    setLogLevel(level) {
      log.level = level;
    },
  };
}

async function purge({ resolver, refOf }: OperatedParts, request: PurgeRequest): Promise<void> {
  const { isSoft } = request;
  if ('prefix' in request) {
    await resolver.purge({ prefix: request.prefix }, { isSoft });
    return;
  }
  const { handles } = request;
  const unconfirmed: unknown[] = [];
  for (let at = 0; at < handles.length; at += MAX_CONCURRENT_PURGES) {
    // Without Redis and a snapshot, purges never wait for anything, and requests would wait for all of them.
    if (at > 0) await nextTurn();
    const batch = handles.slice(at, at + MAX_CONCURRENT_PURGES);
    const purging = batch.map((handle) => resolver.purge({ handle: refOf(handle) }, { isSoft }));
    for (const one of await Promise.allSettled(purging))
      if (one.status === 'rejected') unconfirmed.push(one.reason);
  }
  if (unconfirmed.length > 0) throw unconfirmed[0];
}

/** Returns one change per purged handle, or a single change for a prefix. */
function changesOf(request: PurgeRequest): LoggedChange[] {
  const by = { identity: 'operator', isConfirmed: true } as const;
  const made = { operation: 'purge', ...by, interface: 'admin', outcome: 'changed' } as const;
  if ('prefix' in request) return [{ ...made, prefix: request.prefix }];
  return request.handles.map((handle) => ({ ...made, handle }));
}

async function inspect(key: string, cache: Cache, now: () => number): Promise<CacheCopy[]> {
  const { memory, redis } = await cache.inspect(key);
  const stateOf = (entry: Entry) => entryState(entry, now(), cache.trustedSince());
  const copies: CacheCopy[] = [];
  if (memory) {
    const { entry, bytes, hits } = memory;
    copies.push({ tier: 'memory', bytes, hits, ...stateOf(entry) });
  }
  if (redis) copies.push({ tier: 'redis', bytes: encodeEntry(key, redis).length, ...stateOf(redis) });
  return copies;
}

function entryState(entry: Entry, now: number, trustedSince: ReturnType<Cache['trustedSince']>) {
  const seconds = (ms: number): number => Math.max(0, Math.round(ms / 1000));
  const state = judge(entry, now, trustedSince);
  return {
    kind: entry.kind,
    state,
    ageSeconds: seconds(now - entry.requestedAt),
    ttlSeconds: state === 'fresh' ? seconds(entry.staleAt - now) : 0,
    staleIfErrorSeconds: seconds(entry.deleteAt - now),
  };
}
