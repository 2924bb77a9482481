// Compares a sample of hits, and of the entries left after writes, with the records at the Handle server.
import type { Cache } from '../cache/cache.js';
import type { Entry } from '../cache/entry.js';
import { judge } from '../cache/policy.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { createTokenBuckets } from '../coordination/token-bucket.js';
import { type HandleRef, refOfKey } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { LabelValue } from '../observe/metric-list.js';
import { exceptServiceError } from '../resolver/loader.js';
import type { Resolver } from '../resolver/resolver.js';
import { OWN_WORK } from '../upstream/caller.js';
import type { UpstreamClient } from '../upstream/client.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import { type AuditResult, type AuditedAnswer, classify, isSameRecord } from './classify.js';

export interface AuditParts {
  cache: Pick<Cache, 'memory' | 'inspect' | 'trustedSince' | 'redisState'>;
  reads: Pick<UpstreamClient, 'resolve'>;
  /** A function, because the resolver reports its hits to the audit. */
  resolver: () => Pick<Resolver<unknown>, 'refOf' | 'recheck'>;
}

export interface Audit {
  /** Counts a hit from an entry; undefined without `audit.hits`. */
  onHit: ((handle: HandleRef, entry: Entry) => void) | undefined;
  /** Counts a hit from a prepared response, whose entry is in memory; undefined without `audit.hits`. */
  onPreparedHit: ((handle: string) => void) | undefined;
  /** Called when a write, of any instance, has been applied to the memory of this instance. */
  onWritten: (key: string) => void;
  close: () => void;
}

interface AuditTask {
  handle: HandleRef;
  served: AuditedAnswer['served'];
  sample: LabelValue<'auditSample'>;
}

/** Maximum number of known writes; a forgotten write counts as one that bypassed the proxy. */
const MAX_WRITTEN = 100_000;
/** Delay after which an entry stored by a load from before the write would be in place. */
const AFTER_WRITE_MS = 1000;
/** Time in which messages about a write in flight arrive from other instances. */
const SETTLE_MS = 1000;
/** Maximum shift between the clocks of instances, and delay of their messages. */
const MARGIN_MS = 250;

export function createAudit(
  { audit: { hits, writes, readsPerSecond }, cache: { found, notFound } }: Pick<Config, 'audit' | 'cache'>,
  { clock, metrics, log }: Context,
  parts: AuditParts,
): Audit {
  const { now } = clock;
  const { cache, resolver } = parts;
  const ttlMs = Math.max(found.maxTtlMs, notFound.ttlMs);
  const written = new ExpiringMap<number>({ ttlMs, maxEntries: MAX_WRITTEN, now });
  const takeTokens = createTokenBuckets({ now });
  const limit = { intervalMs: 1000 / readsPerSecond, burst: readsPerSecond };
  const isHitSampled = createSampler(hits);
  const isWriteSampled = createSampler(writes);
  const compare = createCompare({ clock, written, ...parts });
  let isClosed = false;

  /** Runs an audit, unless there have been too many. Compares and then corrects: an entry known to be old is replaced. */
  async function run(task: AuditTask): Promise<void> {
    const { handle, served, sample } = task;
    const result = await compare(task);
    const ageMs = served.at - served.entry.requestedAt;
    metrics.countAudit({ sample, result, ageMs });
    if (result === 'equal' || result === 'inconclusive') return;
    const line = { handle: handle.text, ageSeconds: Math.round(ageMs / 1000) };
    if (result === 'older-within-ttl') log.info(line, 'record was changed at the Handle server');
    else log.error(line, 'older record served after an acknowledged write');
    await resolver().recheck(handle, OWN_WORK);
  }

  async function withinLimit(sample: AuditTask['sample'], work: () => Promise<void>): Promise<void> {
    const { isTaken } = await takeTokens('audit', limit, 1);
    if (!isTaken) metrics.countAudit({ sample, result: 'skipped', ageMs: 0 });
    else if (!isClosed) await work().catch(exceptServiceError);
  }

  const auditHit = (handle: HandleRef, entry: Entry): void => {
    const served = { entry, at: now() };
    void withinLimit('hit', () => run({ handle, served, sample: 'hit' }));
  };

  /** Audits the oldest entry that this instance would serve as fresh. */
  async function auditCopies(key: string): Promise<void> {
    const { memory, redis } = await cache.inspect(key);
    const at = now();
    const [entry] = [memory?.entry, redis]
      .filter((copy) => copy !== undefined)
      .filter((copy) => judge(copy, at, cache.trustedSince()) === 'fresh')
      .sort((one, other) => one.requestedAt - other.requestedAt);
    if (entry === undefined) metrics.countAudit({ sample: 'write', result: 'equal', ageMs: 0 });
    else await run({ handle: refOfKey(key), served: { entry, at }, sample: 'write' });
  }

  return {
    onHit:
      hits === 0
        ? undefined
        : (handle, entry) => {
            if (isHitSampled()) auditHit(handle, entry);
          },
    onPreparedHit:
      hits === 0
        ? undefined
        : (text) => {
            if (!isHitSampled()) return;
            const handle = resolver().refOf(text);
            const entry = cache.memory.inspect(handle.key)?.entry;
            if (entry !== undefined) auditHit(handle, entry);
          },
    onWritten(key) {
      if (hits === 0 && writes === 0) return;
      written.set(key, now());
      if (!isWriteSampled()) return;
      void withinLimit('write', async () => {
        await pause(clock, AFTER_WRITE_MS);
        if (!isClosed) await auditCopies(key);
      });
    },
    close() {
      isClosed = true;
    },
  };
}

interface CompareDeps extends AuditParts {
  clock: Context['clock'];
  /** Times at which acknowledged writes were applied to this instance. */
  written: ExpiringMap<number>;
}

/** Creates the comparison of an entry with the record at the Handle server, which is read without storing it. */
function createCompare({ cache, reads, clock, written }: CompareDeps) {
  const isShared = cache.redisState() !== 'disabled';
  const marginMs = isShared ? MARGIN_MS : 0;
  const read = (handle: HandleRef): Promise<Outcome | undefined> =>
    reads
      .resolve({ handle, authoritative: true, caller: OWN_WORK })
      .catch((failure: unknown) => exceptServiceError(failure) ?? undefined);
  /** Whether a fence is raised, or its message may have been missed. */
  const isInFlight = (key: string): boolean =>
    cache.redisState() === 'down' || !cache.memory.accepts(key, cache.memory.moment());

  return async function compare({ handle, served }: AuditTask): Promise<AuditResult> {
    const { key } = handle;
    const record = await read(handle);
    const differs = record !== undefined && !isSameRecord(served.entry, record);
    if (differs && isShared) await pause(clock, SETTLE_MS);
    const writes = { isInFlight: isInFlight(key), appliedAt: written.get(key), marginMs };
    return classify({ served, record, writes });
  };
}

const pause = ({ after }: Pick<Context['clock'], 'after'>, ms: number): Promise<void> =>
  new Promise((resolve) => {
    after(ms, resolve);
  });

/** Samples calls with a probability. The gaps are random, so that no regular traffic stays unsampled. */
export function createSampler(probability: number, random: () => number = Math.random): () => boolean {
  const gap = (): number =>
    probability === 0 ? Infinity : 1 + Math.floor(Math.log(1 - random()) / Math.log1p(-probability));
  let left = gap();
  return () => {
    if (--left > 0) return false;
    left = gap();
    return true;
  };
}
