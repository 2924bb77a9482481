// Compares sampled hits, and the entries cached after sampled writes, with the records at the Handle server.
import type { Cache } from '../cache/cache.js';
import type { Entry } from '../cache/entry.js';
import { judge } from '../cache/policy.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { createTokenBuckets } from '../coordination/token-bucket.js';
import { ServiceError } from '../errors.js';
import { type HandleRef, refOfKey } from '../handle/handle.js';
import type { LabelValue } from '../observe/metric-list.js';
import type { Resolver } from '../resolver/resolver.js';
import { OWN_WORK } from '../upstream/caller.js';
import type { UpstreamClient } from '../upstream/client.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import type { AuditResult, AuditedAnswer } from './classify.js';
import { createCompare } from './compare.js';
import { createSampler } from './sampler.js';

interface AuditParts {
  cache: Pick<Cache, 'memory' | 'inspect' | 'trustedSince' | 'redisState'>;
  reads: Pick<UpstreamClient, 'resolve'>;
  /** Lazy, because the resolver is created after the audit, to which it reports hits. */
  resolver: () => Pick<Resolver<unknown>, 'recheck'>;
}

export interface Audit {
  /** Called for each hit; undefined without `audit.hits`. */
  onHit: ((handle: HandleRef, entry: Entry) => void) | undefined;
  /** Called for each hit served as a prepared response; undefined without `audit.hits`. */
  onPreparedHit: ((key: string) => void) | undefined;
  /** Called when a write by any instance has been applied to the memory of this instance. */
  onWritten: (key: string) => void;
  close: () => void;
}

type Sample = LabelValue<'auditSample'>;

/** Maximum remembered writes. After a forgotten write, an older entry counts as `older-within-ttl`. */
const MAX_WRITTEN = 100_000;
/** Delay that lets most loads that started before the write finish. */
const AFTER_WRITE_MS = 1000;

export function createAudit(
  { audit, cache: { found, notFound } }: Pick<Config, 'audit' | 'cache'>,
  context: Context,
  parts: AuditParts,
): Audit {
  const { clock, metrics } = context;
  const { now } = clock;
  const { cache, reads, resolver } = parts;
  const ttlMs = Math.max(found.maxTtlMs, notFound.ttlMs);
  const written = new ExpiringMap<number>({ ttlMs, maxEntries: MAX_WRITTEN, now });
  const compare = createCompare({ cache, reads, clock, appliedAt: (key) => written.get(key) });
  const report = createReport(context, resolver);
  const { run, close } = createLimit(audit, context);
  const [isHitSampled, isWriteSampled] = [createSampler(audit.hits), createSampler(audit.writes)];

  function auditHit(handle: HandleRef, entry: Entry): void {
    const served = { entry, at: now() };
    run('hit', async () => report('hit', { handle, served, result: await compare(handle, served) }));
  }

  /** Audits the oldest copy that this instance would serve as fresh, from memory or Redis. */
  async function auditCopies(key: string): Promise<void> {
    const { memory, redis } = await cache.inspect(key);
    const at = now();
    const [entry] = [memory?.entry, redis]
      .filter((copy) => copy !== undefined)
      .filter((copy) => judge(copy, at, cache.trustedSince()) === 'fresh')
      .sort((one, other) => one.requestedAt - other.requestedAt);
    if (entry === undefined) {
      metrics.countAudit({ sample: 'write', result: 'equal', ageMs: 0 });
      return;
    }
    const [handle, served] = [refOfKey(key), { entry, at }];
    await report('write', { handle, served, result: await compare(handle, served) });
  }

  const onHit = (handle: HandleRef, entry: Entry): void => {
    if (isHitSampled()) auditHit(handle, entry);
  };
  const onPreparedHit = (key: string): void => {
    const entry = isHitSampled() ? cache.memory.inspect(key)?.entry : undefined;
    if (entry !== undefined) auditHit(refOfKey(key), entry);
  };
  return {
    ...(audit.hits === 0 ? { onHit: undefined, onPreparedHit: undefined } : { onHit, onPreparedHit }),
    onWritten(key) {
      if (audit.hits === 0 && audit.writes === 0) return;
      written.set(key, now());
      if (!isWriteSampled()) return;
      clock.after(AFTER_WRITE_MS, () => {
        run('write', () => auditCopies(key));
      });
    },
    close,
  };
}

/** Creates a function that runs at most `audit.readsPerSecond` audits per second, and counts skipped audits. */
function createLimit({ readsPerSecond }: Config['audit'], { clock: { now }, metrics, log }: Context) {
  const takeTokens = createTokenBuckets({ now });
  const limit = { intervalMs: 1000 / readsPerSecond, burst: readsPerSecond };
  let isClosed = false;
  const runWithin = async (sample: Sample, work: () => Promise<void>): Promise<void> => {
    const { isTaken } = await takeTokens('audit', limit, 1);
    if (!isTaken) metrics.countAudit({ sample, result: 'skipped', ageMs: 0 });
    else await work();
  };
  const onFailure = (err: unknown): void => {
    // The recheck failed, so the entry was not replaced.
    if (err instanceof ServiceError) return;
    log.error({ err }, 'unexpected error in the audit');
    metrics.countInternalError();
  };
  return {
    run: (sample: Sample, work: () => Promise<void>): void => {
      if (!isClosed) runWithin(sample, work).catch(onFailure);
    },
    close: (): void => {
      isClosed = true;
    },
  };
}

interface Compared {
  handle: HandleRef;
  served: AuditedAnswer['served'];
  result: AuditResult;
}

/** Creates the function that reports a result, and reloads an entry that is older than the record. */
function createReport({ metrics, log }: Context, resolver: AuditParts['resolver']) {
  return async function report(sample: Sample, { handle, served, result }: Compared): Promise<void> {
    const ageMs = served.at - served.entry.requestedAt;
    metrics.countAudit({ sample, result, ageMs });
    if (result === 'equal' || result === 'inconclusive') return;
    const line = { handle: handle.text, ageSeconds: Math.round(ageMs / 1000) };
    if (result === 'older-within-ttl') log.info(line, 'record was changed at the Handle server');
    else log.error(line, 'older record served after an acknowledged write');
    await resolver().recheck(handle, OWN_WORK);
  };
}
