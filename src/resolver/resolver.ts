// Answers a handle from the cache or the upstream, and invalidates handles.
import type { Cache } from '../cache/cache.js';
import { type Clock, untilDeadline } from '../cache/clock.js';
import type { Entry } from '../cache/entry.js';
import { isNearEnd } from '../cache/policy.js';
import type { Fence } from '../cache/store.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type HandleRef, foldHandle, handleRef } from '../handle/handle.js';
import { type Caller, type LimitMiss, OWN_WORK } from '../upstream/caller.js';
import type { UpstreamClient } from '../upstream/client.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import {
  type EntryLoad,
  type KeptEntry,
  Loader,
  type LoaderDeps,
  type LoadTask,
  exceptServiceError,
} from './loader.js';
import type { FromEntry, Resolution, StaleReason } from './resolution.js';
import { SerialFlight, SingleFlight } from './single-flight.js';

interface ResolverDeps<Ticket> extends LoaderDeps<Ticket> {
  /** The memory tier, read first and synchronously. */
  memory: { peek: (key: string) => Entry | undefined; hits: (key: string) => number };
  /** Minimum hits of an entry for a refresh ahead; 0 turns it off. */
  refreshAheadMinHits: number;
  /** How long a reader waits for the upstream when there is a stale entry (ms). */
  staleAfterMs: number;
  caseSensitive: boolean;
  /** Limits reads that memory does not answer; by default none is refused. */
  limitMiss?: LimitMiss;
  clock?: Pick<Clock, 'after'>;
}

export interface ResolveOptions {
  authoritative: boolean;
  /** By default an unknown client of class `normal`. */
  caller?: Caller | undefined;
  /** Whether a referral is returned if memory has no entry; by default it is followed. */
  isUnreferred?: boolean;
}

export interface ResolverRead extends Pick<ResolveOptions, 'authoritative' | 'isUnreferred'> {
  /** Judges a request that memory does not answer; an error it throws is the answer. */
  admit: () => Caller | undefined | Promise<Caller | undefined>;
}

/** One handle, or all handles under the prefix; an empty prefix means every handle. */
export type PurgeTarget = { handle: HandleRef } | { prefix: string };

interface ResolverParts {
  cache: Pick<Cache, 'store' | 'memory' | 'trustedSince'>;
  upstream: UpstreamClient;
  limitMiss: LimitMiss;
  /** `cache.staleIfError` for a key. */
  staleIfErrorMs: (key: string) => number;
}

/** Beyond this number the oldest failed keys are loaded again. */
const MAX_FAILURES = 100_000;

/** `settings` is called again for settings that a reload may change. */
export function createResolver(
  settings: () => Pick<Config, 'cache' | 'upstream'>,
  { clock: { now } }: Context,
  { cache, upstream, limitMiss, staleIfErrorMs }: ResolverParts,
): Resolver<unknown> {
  const { retryAfterMs, staleAfterMs, caseSensitive, mirrorMaxTtlMs } = settings().upstream;
  return new Resolver({
    store: cache.store,
    memory: cache.memory,
    trustedSince: cache.trustedSince,
    upstream,
    failures: new ExpiringMap({ ttlMs: retryAfterMs, maxEntries: MAX_FAILURES, now }),
    ttlBoundsOf(key) {
      const { found, notFound } = settings().cache;
      return { found, notFound, staleIfErrorMs: staleIfErrorMs(key), mirrorMaxTtlMs };
    },
    get refreshAheadMinHits() {
      return settings().cache.refreshAhead.minHits;
    },
    staleAfterMs,
    caseSensitive,
    limitMiss,
    now,
  });
}

/** Rejects the wait for a load that is late. */
const LATE = new Error('the load is late');

export class Resolver<Ticket> {
  readonly #deps: ResolverDeps<Ticket>;
  readonly #loader: Loader<Ticket>;
  readonly #flight = new SingleFlight<EntryLoad>();
  /** Loads that follow no referral. */
  readonly #unreferredFlight = new SingleFlight<EntryLoad>();
  readonly #rechecks = new SerialFlight();

  constructor(deps: ResolverDeps<Ticket>) {
    this.#deps = deps;
    this.#loader = new Loader(deps);
  }

  /** Reads in the order memory, traffic rules, load. Synchronous for a fresh entry in memory. */
  read(handle: HandleRef, options: ResolverRead): FromEntry | Promise<Resolution> {
    const fresh = options.authoritative ? undefined : this.fromMemory(handle);
    return fresh ?? this.#readAdmitted(handle, options);
  }

  #readAdmitted(handle: HandleRef, options: ResolverRead): Promise<Resolution> {
    const { admit, authoritative, isUnreferred = false } = options;
    const resolve = (caller: Caller | undefined): Promise<Resolution> =>
      this.resolve(handle, { authoritative, isUnreferred, caller });
    try {
      const admitting = admit();
      return admitting instanceof Promise ? admitting.then(resolve) : resolve(admitting);
    } catch (refusal) {
      const error = refusal as Error;
      return Promise.reject(error);
    }
  }

  /**
   * Answers a handle. `authoritative` always reads from the upstream, and stores the outcome.
   *
   * @throws ServiceError when the upstream fails and no stale entry may be served
   */
  resolve(handle: HandleRef, { authoritative, caller, isUnreferred }: ResolveOptions): Promise<Resolution> {
    const task = { handle, caller, isUnreferred };
    if (authoritative) {
      return this.#miss(caller, () => this.#readAuthoritatively({ ...task, authoritative, newerThan: 0 }));
    }
    const entry = this.#deps.memory.peek(handle.key);
    const fresh = this.#answerIfFresh(entry, handle);
    return fresh ? Promise.resolve(fresh) : this.#miss(caller, () => this.#load(task, entry));
  }

  /** A fresh entry in memory; undefined if a load is needed. */
  fromMemory(handle: HandleRef): FromEntry | undefined {
    return this.#answerIfFresh(this.#deps.memory.peek(handle.key), handle);
  }

  #answerIfFresh(entry: Entry | undefined, handle: HandleRef): FromEntry | undefined {
    if (entry === undefined || this.#loader.judge(entry) !== 'fresh') return undefined;
    const newerThan = entry.requestedAt;
    this.#refreshAhead(entry, { handle, authoritative: false, newerThan, caller: OWN_WORK });
    return { kind: 'entry', entry, from: 'memory', collapsed: false };
  }

  #miss(caller: Caller | undefined, read: () => Promise<Resolution>): Promise<Resolution> {
    const { limitMiss } = this.#deps;
    return limitMiss === undefined ? read() : limitMiss(caller, read, isUnknown);
  }

  #load(named: Omit<LoadTask, 'authoritative' | 'newerThan'>, entry: Entry | undefined): Promise<Resolution> {
    const { load, collapsed } = this.#join({ ...named, authoritative: false, newerThan: 0 });
    const answer = this.#answerInTime(named.handle.key, entry, load);
    return collapsed ? answer.then(asCollapsed) : answer;
  }

  /** Invalidates a handle in every tier. A load in flight still answers its callers, but is not stored. */
  async forget({ key }: HandleRef): Promise<void> {
    await this.#deps.store.forget(key);
  }

  /** Learns from a server whether the handle exists, and invalidates an entry that contradicts it. */
  async learn({ key }: HandleRef, { exists }: { exists: boolean }): Promise<void> {
    const { entry } = await this.#deps.store.get(key);
    if (entry === undefined || (entry.kind !== 'not-found') === exists) return;
    await this.#deps.store.forget(key).catch(exceptServiceError);
  }

  /** Reads a cached handle again after a failed condition: the entry may be as old as the ETag of the caller. */
  recheck(handle: HandleRef, caller: Caller | undefined): Promise<void> {
    return this.#rechecks.join(handle.key, async () => {
      const { entry } = await this.#deps.store.get(handle.key);
      if (entry === undefined) return;
      await this.resolve(handle, { authoritative: true, caller }).catch(exceptServiceError);
    });
  }

  /** Purges on behalf of the operator; a soft purge makes entries stale. Loads in flight are not stored. */
  async purge(target: PurgeTarget, { isSoft }: { isSoft: boolean }): Promise<void> {
    if ('handle' in target) {
      const { key } = target.handle;
      await (isSoft ? this.#deps.store.soften(key) : this.#deps.store.forget(key));
      return;
    }
    for (const prefix of keyPrefixes(target.prefix, this.#deps.caseSensitive)) {
      await this.#deps.store.ban({ prefix, isSoft });
    }
  }

  /** Announces a write of the handle: no load that began before its end is stored if it changed the record. */
  fence({ key }: HandleRef): Promise<Fence> {
    return this.#deps.store.fence(key);
  }

  /** Later callers do not join the loads in flight: the key was invalidated, here or on another instance. */
  detachLoads(key: string): void {
    for (const flight of [this.#flight, this.#unreferredFlight]) flight.detach(key);
    this.#deps.upstream.detachLoads?.(key);
  }

  /** As `detachLoads`, for all keys under the prefix. */
  detachLoadsUnder(prefix: string): void {
    for (const flight of [this.#flight, this.#unreferredFlight]) flight.detachUnder(prefix);
    this.#deps.upstream.detachLoadsUnder?.(prefix);
  }

  readonly refOf = (text: string): HandleRef => handleRef(text, this.#deps.caseSensitive);

  /** Joins no load in flight, because it may be older than a change; later callers join none from before this answer. */
  async #readAuthoritatively(task: LoadTask): Promise<Resolution> {
    const resolution = await this.#loader.start(task).answer;
    this.detachLoads(task.handle.key);
    return resolution;
  }

  #join(task: LoadTask): { load: EntryLoad; collapsed: boolean } {
    const start = (): EntryLoad => this.#loader.start(task);
    const flight = task.isUnreferred ? this.#unreferredFlight : this.#flight;
    return flight.join(task.handle.key, { start, since: this.#deps.trustedSince() });
  }

  #answerInTime(key: string, entry: Entry | undefined, load: EntryLoad): Promise<Resolution> {
    const isStale = this.#loader.judge(entry) === 'stale';
    const kept = isStale ? { entry, from: 'memory' as const } : load.kept;
    return kept instanceof Promise
      ? kept.then((found) => this.#answerOrStale(key, found, load))
      : this.#answerOrStale(key, kept, load);
  }

  /** RFC 8767 section 5: a stale entry answers when the load fails or is late. */
  #answerOrStale(key: string, { entry: staleEntry, from }: KeptEntry, load: EntryLoad): Promise<Resolution> {
    // The entry may be fresh by now, if the lease was renewed.
    if (staleEntry === undefined || this.#loader.judge(staleEntry) === 'none') {
      return load.answer.catch((failure: unknown) => this.#entryOfAnotherLoad(key, failure));
    }
    const stale = (reason: StaleReason): FromEntry => {
      return { kind: 'entry', entry: staleEntry, from, collapsed: false, stale: reason };
    };
    const waitMs = load.startedAt + this.#deps.staleAfterMs - this.#deps.now();
    const inTime = untilDeadline(load.answer, Math.max(0, waitMs), () => LATE, this.#deps.clock);
    return inTime.catch((failure: unknown) => stale(failure === LATE ? 'timeout' : 'error'));
  }

  /** Reads memory again after a failure: a concurrent load may have filled it meanwhile. */
  #entryOfAnotherLoad(key: string, failure: unknown): FromEntry {
    const entry = this.#deps.memory.peek(key);
    const state = this.#loader.judge(entry);
    if (entry === undefined || state === 'none') throw failure;
    const stale = state === 'stale' ? { stale: 'error' as const } : {};
    return { kind: 'entry', entry, from: 'memory', collapsed: false, ...stale };
  }

  /** Refreshes in the background before the entry expires. */
  #refreshAhead(entry: Entry, task: LoadTask): void {
    const { memory, now, refreshAheadMinHits: minHits, failures } = this.#deps;
    const { key } = task.handle;
    if (minHits === 0 || !isNearEnd(entry, now()) || memory.hits(key) < minHits) return;
    if (!failures.has(key)) this.#join(task);
  }
}

const isUnknown = (resolution: Resolution): boolean =>
  resolution.kind === 'entry' && resolution.entry.kind === 'not-found';

const asCollapsed = (resolution: Resolution): Resolution =>
  resolution.kind === 'entry' ? { ...resolution, collapsed: true } : resolution;

/** A prefix itself is a handle under `0.NA/`, so a text without a slash may be the start of such a handle. */
function keyPrefixes(text: string, caseSensitive: boolean): string[] {
  const folded = foldHandle(text, caseSensitive);
  return text === '' || text.includes('/') ? [folded] : [folded, `0.NA/${folded}`];
}
