// Compares sampled hits, and the entries cached after sampled writes, with the records at the Handle server.
import { LRUCache } from 'lru-cache';
import type { Started } from '../../plugin.js';
import { pause } from '../../clock.js';
import type { Host } from '../../host.js';
import type { Entry } from '../../cache/entry.js';
import { judge } from '../../cache/policy.js';
import { ServiceError } from '../../errors.js';
import { type HandleRef, refOfKey } from '../../handle/handle.js';
import type { Outcome } from '../../handle/outcome.js';
import { createReportUnexpected } from '../../http/error-reply.js';
import { exceptServiceError } from '../../resolver/loader.js';
import { OWN_WORK } from '../../upstream/caller.js';
import { ExpiringMap } from '../../upstream/expiring-map.js';
import { type AuditConfig, METRICS, type Sample, type SampleResult } from './plugin.js';

/** Maximum remembered writes. After a forgotten write, an older entry counts as `older-within-ttl`. */
const MAX_WRITTEN = 100_000;
/** Delay that lets most loads that started before the write finish. */
const AFTER_WRITE_MS = 1000;

export function start(host: Host, { audit, cache: { found, notFound } }: AuditConfig): Started {
  const { cache, clock } = host;
  const { now } = clock;
  const ttlMs = Math.max(found.maxTtlMs, notFound.ttlMs);
  const written = new ExpiringMap<number>({ ttlMs, maxEntries: MAX_WRITTEN, now });
  const { count, statistics } = createCounts(host);
  const compare = createCompare(host, (key) => written.get(key));
  const auditEntry = createAuditEntry(host, compare, count);
  const { run, close } = createLimit(audit, host, count);
  const [isHitSampled, isWriteSampled] = [createSampler(audit.hits), createSampler(audit.writes)];

  function auditHit(handle: HandleRef, entry: Entry): void {
    const served = { entry, at: now() };
    run('hit', () => auditEntry('hit', handle, served));
  }

  /** Audits the oldest copy that this instance would serve as fresh, from memory or Redis. */
  async function auditCopies(key: string): Promise<void> {
    // Before the copies are read: a later write may be applied between memory and Redis.
    const at = now();
    const { memory, redis } = await cache.inspect(key);
    const [entry] = [memory?.entry, redis]
      .filter((copy) => copy !== undefined)
      .filter((copy) => judge(copy, at, cache.trustedSince()) === 'fresh')
      .sort((one, other) => one.requestedAt - other.requestedAt);
    if (entry === undefined) count({ sample: 'write', result: 'equal' });
    else await auditEntry('write', refOfKey(key), { entry, at });
  }

  const hit: Started['hit'] = (handle, entry) => {
    if (isHitSampled()) auditHit(handle, entry);
  };
  const repeat: Started['repeat'] = (key) => {
    const entry = isHitSampled() ? cache.memory.inspect(key)?.entry : undefined;
    if (entry !== undefined) auditHit(refOfKey(key), entry);
  };
  return {
    ...(audit.hits > 0 && { hit, repeat }),
    written(key) {
      written.set(key, now());
      if (!isWriteSampled()) return;
      clock.after(AFTER_WRITE_MS, () => run('write', () => auditCopies(key)));
    },
    statistics,
    close,
  };
}

interface CountedSample {
  sample: Sample;
  result: SampleResult;
  ageMs?: number;
}

type Count = (audited: CountedSample) => void;

function createCounts({ metrics, clock: { now } }: Host) {
  const audits = metrics.counterOf(METRICS.audits);
  const staleAge = metrics.histogramOf(METRICS.staleAge);
  const lastDay = new LastDay<SampleResult>(now);
  return {
    count: ({ sample, result, ageMs = 0 }: CountedSample): void => {
      audits({ sample, result });
      if (sample === 'hit') lastDay.add(result);
      if (result === 'older-within-ttl') staleAge(ageMs / 1000);
    },
    /** Returns how many hits were compared in the last 24 hours, and how many of them were equal. */
    statistics: () => {
      const equal = lastDay.total('equal');
      const older = lastDay.total('older-within-ttl') + lastDay.total('older-after-acknowledged-write');
      return { audit: { compared: equal + older, equal } };
    },
  };
}

/** Creates a function that runs `readsPerSecond` audits per second on average, and counts skipped ones. */
function createLimit({ readsPerSecond }: AuditConfig['audit'], host: Host, count: Count) {
  const { now } = host.clock;
  const onUnexpected = createReportUnexpected(host, 'unexpected error in the audit');
  const intervalMs = 1000 / readsPerSecond;
  /** When the bucket of `readsPerSecond` audits is full again. */
  let fullAt = 0;
  let isClosed = false;
  function isTaken(): boolean {
    const at = now();
    const after = Math.max(at, fullAt) + intervalMs;
    if (after > at + 1000) return false;
    fullAt = after;
    return true;
  }
  const onFailure = (error: unknown): void => {
    // After a failed recheck the entry was not replaced.
    if (!(error instanceof ServiceError)) onUnexpected(error);
  };
  return {
    run: (sample: Sample, work: () => Promise<void>): void => {
      if (isClosed) return;
      if (isTaken()) work().catch(onFailure);
      else count({ sample, result: 'skipped' });
    },
    close: (): void => {
      isClosed = true;
    },
  };
}

/** Creates the function that compares an entry, reports the result, and reloads an entry that is older than the record. */
function createAuditEntry({ log, resolver, hooks }: Host, compare: Compare, count: Count) {
  return async function auditEntry(sample: Sample, ...[handle, served]: Parameters<Compare>): Promise<void> {
    const result = await compare(handle, served);
    const ageMs = served.at - served.entry.requestedAt;
    count({ sample, result, ageMs });
    if (sample === 'hit' && result !== 'inconclusive')
      for (const each of hooks.compared) each(handle, result === 'equal');
    if (result === 'equal' || result === 'inconclusive') return;
    const line = { handle: handle.text, ageSeconds: Math.round(ageMs / 1000) };
    if (result === 'older-within-ttl') log.info(line, 'record was changed at the Handle server');
    else log.error(line, 'older record served after an acknowledged write');
    await resolver.recheck(handle, OWN_WORK);
  };
}

type Compare = (handle: HandleRef, served: AuditedAnswer['served']) => Promise<AuditResult>;

/** Time for messages about a write in flight to arrive from other instances. */
const SETTLE_MS = 1000;
/** Maximum clock skew between instances, including message delay. */
const MARGIN_MS = 250;

/** Stores no record, which would extend the TTL. `appliedAt`: of the last acknowledged write to a key. */
export function createCompare(
  { cache, upstreams: { reads }, clock }: Host,
  appliedAt: (key: string) => number | undefined,
): Compare {
  const isShared = cache.redisState() !== 'disabled';
  const read = async (handle: HandleRef): Promise<Outcome | undefined> => {
    try {
      return await reads.resolve({ handle, authoritative: true, caller: OWN_WORK });
    } catch (failure) {
      exceptServiceError(failure);
      return undefined;
    }
  };
  /** Whether a fence is raised, or a fence message may have been missed. */
  const isInFlight = (key: string): boolean =>
    cache.redisState() === 'down' || !cache.memory.accepts(key, cache.memory.moment());

  return async function compare(handle, served) {
    const { key } = handle;
    const record = await read(handle);
    if (isShared && record !== undefined && !isSameRecord(served.entry, record))
      await pause(clock, SETTLE_MS);
    const marginMs = isShared ? MARGIN_MS : 0;
    const writes = { isInFlight: isInFlight(key), appliedAt: appliedAt(key), marginMs };
    return classify({ served, record, writes });
  };
}

const HOURS = 24;
const HOUR_MS = 3_600_000;

/** Counts events in the current hour and the previous 23 hours. */
export class LastDay<Name extends string> {
  /** By the hour since the epoch. */
  readonly #hours = new LRUCache<number, Map<Name, number>>({ max: HOURS });

  constructor(private readonly now: () => number) {}

  add(name: Name): void {
    const hour = this.#hour();
    const counts = this.#hours.get(hour) ?? new Map<Name, number>();
    this.#hours.set(hour, counts.set(name, (counts.get(name) ?? 0) + 1));
  }

  total(name: Name): number {
    const since = this.#hour() - HOURS;
    return [...this.#hours].reduce(
      (sum, [hour, counts]) => sum + (hour > since ? (counts.get(name) ?? 0) : 0),
      0,
    );
  }

  #hour(): number {
    return Math.floor(this.now() / HOUR_MS);
  }
}

/** Draws the distance to the next sample, so that a call between samples costs only a decrement. */
export function createSampler(probability: number): () => boolean {
  const gap = (): number =>
    probability === 0 ? Infinity : 1 + Math.floor(Math.log(1 - Math.random()) / Math.log1p(-probability));
  let left = gap();
  return () => {
    if (--left > 0) return false;
    left = gap();
    return true;
  };
}

export interface AuditedAnswer {
  /** The entry that was served for a hit, or would have been. */
  served: { entry: Entry; at: number };
  /** The record at the Handle server, read after `served.at`; undefined if it could not be read. */
  record: Outcome | undefined;
  writes: {
    isInFlight: boolean;
    /** When the last acknowledged write was applied to this instance (ms since the epoch). */
    appliedAt: number | undefined;
    /** Maximum time (ms) by which clock skew may date a load of the new record before `appliedAt`. */
    marginMs: number;
  };
}

type AuditResult = Exclude<SampleResult, 'skipped'>;

/**
 * Returns `older-after-acknowledged-write` only for an entry that was loaded before a write and served after
 * it. Any other conclusive difference is attributed to a write that bypassed the proxy.
 */
export function classify({ served: { entry, at }, record, writes }: AuditedAnswer): AuditResult {
  if (record === undefined || record.kind === 'refused') return 'inconclusive';
  if (isSameRecord(entry, record)) return 'equal';
  const { isInFlight, appliedAt = -Infinity, marginMs } = writes;
  // The entry may have been current when it was served.
  if (isInFlight || appliedAt >= at) return 'inconclusive';
  if (entry.requestedAt >= appliedAt) return 'older-within-ttl';
  return entry.requestedAt < appliedAt - marginMs ? 'older-after-acknowledged-write' : 'inconclusive';
}

/** Whether both have the same public values. Messages of not-found outcomes are ignored. */
const isSameRecord = (entry: Entry, record: Outcome): boolean =>
  entry.kind === record.kind && (record.kind !== 'found' || entry.values === record.values);
