// Resolves handles from the cache or the upstream, and invalidates them.
import { type Clock, untilDeadline } from '../clock.js';
import type { Entry } from '../cache/entry.js';
import { isFresh, isNearEnd, judge } from '../cache/policy.js';
import type { KeptEntry } from '../cache/store.js';
import type { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type HandleRef, upperAscii } from '../handle/handle.js';
import type { Hooks } from '../hooks.js';
import { type AroundMiss, type Caller, OWN_WORK } from '../upstream/caller.js';
import type { ResolveOptions } from '../upstream/contract.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import type { RefOf } from '../upstream/routing.js';
import type { TimeSlicer } from '../time-slicer.js';
import { type EntryLoad, Loader, type LoaderParts, type LoadTask, exceptServiceError } from './loader.js';
import type { FromEntry, Resolution, StaleReason } from './resolution.js';
import { SerialFlight } from './single-flight.js';

interface ResolverParts extends LoaderParts {
  /** Reads large texts from memory. */
  slicer: TimeSlicer;
  refOf: RefOf;
}

export interface ResolverRead {
  authoritative: boolean;
  /** Whether only configured servers are asked after a miss in memory. */
  noFallback?: boolean | undefined;
  onlyIfCached?: boolean | undefined;
  /** Judges a request that misses in memory, and returns its caller. An error that it throws is the response. */
  admit: () => Caller | undefined | Promise<Caller | undefined>;
  /** The client that is charged for reading a large text; undefined if the caller runs in a slice. */
  client?: string | undefined;
}

/** A single handle, or all handles with the prefix; an empty prefix matches every handle. */
export type PurgeTarget = { handle: HandleRef } | { prefix: string };

/** Maximum keys of early refreshes; above it, the oldest may be requested again. */
const MAX_REFRESHING = 100_000;

/** The rejection reason of a wait that times out. */
const LATE = new Error('the load is late');

export class Resolver {
  readonly #clock: Clock;
  readonly #hooks: Hooks;
  readonly #loader: Loader;
  /** Loads that ask only configured servers, if others ask more. */
  readonly #configuredLoader: Loader;
  readonly #loaders: readonly Loader[];
  readonly #rechecks = new SerialFlight();
  /** Keys whose early refresh has begun, until it replaces the entry: each hit after a refusal would begin another. */
  readonly #refreshing: ExpiringMap<true>;
  /** Runs a read that misses in memory inside the hooks of plugins, which add theirs before the first read. */
  aroundMiss: AroundMiss = (miss) => {
    this.aroundMiss = composeAroundMiss(this.#hooks.aroundMiss);
    return this.aroundMiss(miss);
  };

  constructor(
    private readonly settings: Live<Config>,
    context: Context,
    private readonly parts: ResolverParts,
  ) {
    this.#clock = context.clock;
    this.#hooks = context.hooks;
    this.#loader = new Loader(settings, context, parts);
    this.#configuredLoader = new Loader(settings, context, parts);
    this.#loaders = [this.#loader, this.#configuredLoader];
    this.#refreshing = new ExpiringMap({
      ttlMs: settings.current.upstream.retryAfterMs,
      maxEntries: MAX_REFRESHING,
      now: context.clock.now,
    });
    this.#hooks.invalidated.push((key) => this.#detachLoads(key));
    this.#hooks.banned.push((prefix) => {
      for (const loader of this.#loaders) loader.detachUnder(prefix);
    });
    this.#hooks.purged.push((prefix) => this.parts.upstream.preferPrimary?.({ prefix }));
  }

  /**
   * Resolves a handle: reads memory, then has the request judged, then loads. Synchronous for a fresh
   * entry in memory that is not large.
   *
   * @throws ServiceError the refusal of `admit`, also without a promise
   */
  read(handle: HandleRef, options: ResolverRead): FromEntry | Promise<Resolution> {
    const { memory } = this.parts.cache;
    const { authoritative, client } = options;
    const found = authoritative ? undefined : memory.peekSmall(handle.key);
    if (found === undefined) return this.#readAdmitted(handle, undefined, options);
    const answer = (entry: Entry | undefined): FromEntry | Promise<Resolution> =>
      this.fromMemory(handle, entry) ?? this.#readAdmitted(handle, entry, options);
    if (found !== 'large') return answer(found);
    const readNow = () => answer(memory.peek(handle.key));
    if (client === undefined) return readNow();
    // Hundreds of large texts in one turn would block the event loop.
    return Promise.resolve(this.parts.slicer.run(readNow, { client }));
  }

  #readAdmitted(handle: HandleRef, entry: Entry | undefined, options: ResolverRead): Promise<Resolution> {
    const { admit, authoritative, noFallback, onlyIfCached } = options;
    const caller = admit();
    if (caller instanceof Promise)
      return caller.then((admitted) =>
        this.resolve(handle, { authoritative, noFallback, onlyIfCached, caller: admitted }),
      );
    // Otherwise memory has not changed since it was read.
    const task = { handle, authoritative, noFallback, onlyIfCached, caller, newerThan: 0 };
    const read = authoritative ? () => this.#readAuthoritatively(task) : () => this.#load(task, entry);
    return this.aroundMiss({ handle, caller, read, isUnknown });
  }

  /**
   * Resolves a handle for a caller that is already admitted. If `authoritative` is set, the handle is always read
   * from the upstream, and the outcome is stored.
   *
   * @throws ServiceError when the upstream fails and no stale entry may be served
   */
  async resolve(handle: HandleRef, options: ResolveOptions): Promise<Resolution> {
    const { authoritative, noFallback, onlyIfCached, caller } = options;
    const client = caller?.client ?? 'background';
    return this.read(handle, { authoritative, noFallback, onlyIfCached, admit: () => caller, client });
  }

  /** Returns a fresh entry in memory; undefined if a load is needed. `known`: the entry, if it was read just now. */
  fromMemory(handle: HandleRef, known?: Entry): FromEntry | undefined {
    const now = this.#clock.now();
    const entry = known ?? this.parts.cache.memory.peek(handle.key);
    if (entry === undefined) return undefined;
    if (judge(entry, now, this.parts.cache.trustedSince()) !== 'fresh') return undefined;
    const isDue = isNearEnd(entry, now);
    for (const onHit of this.#hooks.hit) onHit(handle, entry);
    if (isDue) this.#refreshAhead(handle, entry);
    return { kind: 'entry', entry, from: 'memory', readAt: now };
  }

  /** Whether memory has a fresh entry. Does not count as a hit or a use, and reads no text. */
  hasFresh({ key }: HandleRef): boolean {
    const { memory, trustedSince } = this.parts.cache;
    const times = memory.times(key);
    return times !== undefined && isFresh(times, this.#clock.now(), trustedSince());
  }

  #load(task: LoadTask, entry: Entry | undefined): Promise<Resolution> {
    if (task.onlyIfCached) return this.#loader.start(task).answer;
    const loader = task.noFallback && this.#hooks.read.length > 0 ? this.#configuredLoader : this.#loader;
    const { load, collapsed } = loader.join(task);
    const answer = this.#answerInTime(task.handle.key, entry, load);
    return collapsed ? answer.then(asCollapsed) : answer;
  }

  /**
   * Reads a handle for this proxy itself, unless any instance has a fresh entry requested after `newerThan` (ms). Joins
   * a load in flight. Shortly after a failed load, resolves to a stale entry without a read.
   *
   * @throws ServiceError when the upstream fails, even if a stale entry exists
   */
  refresh(handle: HandleRef, newerThan: number): Promise<Resolution> {
    return this.#loader.join({ handle, authoritative: false, newerThan, caller: OWN_WORK }).load.answer;
  }

  /** Invalidates an entry that contradicts a server's response about the existence of the handle. */
  async learn({ key }: HandleRef, { exists }: { exists: boolean }): Promise<void> {
    const { entry } = await this.parts.cache.store.get(key);
    if (entry === undefined || (entry.kind !== 'not-found') === exists) return;
    await this.parts.cache.store.forget(key).catch(exceptServiceError);
  }

  /** Rereads a cached handle, for example after a failed precondition: the entry may be as old as the caller's ETag. */
  recheck(handle: HandleRef, caller: Caller | undefined): Promise<void> {
    return this.#rechecks.join(handle.key, async () => {
      const { entry } = await this.parts.cache.store.get(handle.key);
      if (entry === undefined) return;
      await this.resolve(handle, { authoritative: true, caller }).catch(exceptServiceError);
    });
  }

  /** Purges entries for the operator; a soft purge makes them stale. Loads in flight are not stored. */
  async purge(target: PurgeTarget, { isSoft }: { isSoft: boolean }): Promise<void> {
    if ('handle' in target) {
      const { key } = target.handle;
      await (isSoft ? this.parts.cache.store.soften(key) : this.parts.cache.store.forget(key));
      return;
    }
    const prefixes = keyPrefixes(target.prefix, this.parts.refOf);
    const bans = prefixes.map((prefix) => this.parts.cache.store.ban({ prefix, isSoft }));
    // An unconfirmed ban must not prevent the other.
    await Promise.allSettled(bans);
    await Promise.all(bans);
  }

  /** Detaches the loads in flight and the failure of an invalidated key, so that later callers start a new load. */
  #detachLoads(key: string): void {
    for (const loader of this.#loaders) loader.detach(key);
    this.parts.upstream.preferPrimary?.({ key });
  }

  /** Reads from the upstream without joining a load in flight, which may predate a change; nor do later callers. */
  async #readAuthoritatively(task: LoadTask): Promise<Resolution> {
    const resolution = await this.#loader.start(task).answer;
    this.#detachLoads(task.handle.key);
    return resolution;
  }

  #answerInTime(key: string, entry: Entry | undefined, load: EntryLoad): Promise<Resolution> {
    const isStale = entry !== undefined && this.#loader.judge(entry) === 'stale';
    const kept = isStale ? { entry, from: 'memory' as const } : load.kept;
    return kept instanceof Promise
      ? kept.then((found) => this.#answerOrStale(key, found, load))
      : this.#answerOrStale(key, kept, load);
  }

  /** Serves the stale entry if the load fails or times out (RFC 8767 section 5). */
  #answerOrStale(key: string, { entry: staleEntry, from }: KeptEntry, load: EntryLoad): Promise<Resolution> {
    // The entry may have become fresh again if the lease was renewed.
    if (staleEntry === undefined || this.#loader.judge(staleEntry) === 'none')
      return load.answer.catch((failure: unknown) => this.#entryOfAnotherLoad(key, failure));
    const stale = (reason: StaleReason): FromEntry => {
      const readAt = this.#clock.now();
      return { kind: 'entry', entry: staleEntry, from, readAt, stale: reason };
    };
    const waitMs = load.startedAt + this.settings.current.upstream.staleAfterMs - this.#clock.now();
    const inTime = untilDeadline(load.answer, Math.max(0, waitMs), () => LATE, this.#clock);
    return inTime.catch((failure: unknown) => stale(failure === LATE ? 'timeout' : 'error'));
  }

  /** Reads memory again after a failure, because a concurrent load may have filled it meanwhile. */
  #entryOfAnotherLoad(key: string, failure: unknown): FromEntry {
    const entry = this.parts.cache.memory.peek(key);
    const state = this.#loader.judge(entry);
    if (entry === undefined || state === 'none') throw failure;
    const stale = state === 'stale' ? 'error' : undefined;
    return { kind: 'entry', entry, from: 'memory', readAt: this.#clock.now(), stale };
  }

  /** Refreshes a popular entry in the background before it expires. */
  #refreshAhead(handle: HandleRef, { requestedAt: newerThan }: Entry): void {
    const { memory } = this.parts.cache;
    const { minHits } = this.settings.current.cache.refreshAhead;
    const { key } = handle;
    if (minHits === 0 || memory.hits(key) < minHits || this.#refreshing.has(key)) return;
    this.#refreshing.set(key, true);
    const end = (): void => {
      if (memory.times(key)?.requestedAt !== newerThan) this.#refreshing.delete(key);
    };
    this.refresh(handle, newerThan).then(end, end);
  }
}

/** Returns a single function for all of a list, the first outermost. */
function composeAroundMiss([first, ...others]: readonly AroundMiss[]): AroundMiss {
  if (first === undefined) return ({ read }) => read();
  return others.reduce((outer, inner) => (miss) => outer({ ...miss, read: () => inner(miss) }), first);
}

const isUnknown = (resolution: Resolution): boolean =>
  resolution.kind === 'entry' && resolution.entry.kind === 'not-found';

const asCollapsed = (resolution: Resolution): Resolution =>
  resolution.kind === 'entry' ? { ...resolution, collapsed: true } : resolution;

/** Returns the key prefixes of a purge: text without a slash also matches prefix records, handles under `0.NA/`. */
function keyPrefixes(text: string, refOf: RefOf): string[] {
  if (text.includes('/')) return [refOf(text).key];
  const folded = upperAscii(text);
  return text === '' ? [folded] : [folded, `0.NA/${folded}`];
}
