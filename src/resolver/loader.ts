// Loads one handle: reads the shared tier, then the upstream, and stores the outcome; keeps recent failures.
import { type Entry, hasSameContent } from '../cache/entry.js';
import {
  type EntryState,
  type RequestTime,
  type TtlBounds,
  isNewerThanSecondary,
  isStorable,
  judge,
  makeEntry,
} from '../cache/policy.js';
import type { Cache } from '../cache/cache.js';
import type { KeptEntry, Lookup } from '../cache/store.js';
import type { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { Answer, Outcome } from '../handle/outcome.js';
import type { HandleRead, UpstreamClient } from '../upstream/contract.js';
import { ExpiringMap } from '../upstream/expiring-map.js';
import { scopeOf } from '../upstream/failure.js';
import { keepLoaded } from './parsed-records.js';
import type { FromEntry, Resolution } from './resolution.js';
import { SingleFlight } from './single-flight.js';

export interface LoaderParts {
  cache: Cache;
  upstream: UpstreamClient;
  /** Returns `cache.staleIfError` for a key. */
  staleIfErrorMs: (key: string) => number;
  /** Whether the key has a server, here or elsewhere. */
  isServed: (key: string) => boolean;
}

/** A load in flight. */
export interface EntryLoad {
  startedAt: number;
  /** The stored entry, which may be served stale. */
  kept: KeptEntry | Promise<KeptEntry>;
  answer: Promise<Resolution>;
}

export interface LoadTask extends HandleRead {
  /** A fresh entry is used only if requested after this time (ms). A refresh ahead excludes the current one. */
  newerThan: number;
}

/** Loads that ask the same servers: callers of a handle share its load in flight, and its failure. */
export class Loader {
  readonly #flight = new SingleFlight<EntryLoad>();
  readonly #failures: FailureCache;

  constructor(
    private readonly settings: Live<Config>,
    private readonly context: Context,
    private readonly parts: LoaderParts,
  ) {
    this.#failures = new FailureCache({
      // Time after a failure in which the handle is not requested again.
      ttlMs: settings.current.upstream.retryAfterMs,
      maxEntries: MAX_FAILURES,
      now: context.clock.now,
    });
  }

  /** Joins the load in flight of the handle, unless it may have missed a change, or starts a load. */
  join(task: LoadTask): { load: EntryLoad; collapsed: boolean } {
    const { key } = task.handle;
    const running = this.#flight.get(key);
    if (running && running.startedAt >= this.parts.cache.trustedSince())
      return { load: running, collapsed: true };
    const load = this.start(task);
    this.#flight.add(key, load);
    return { load, collapsed: false };
  }

  /** Detaches the load in flight of an invalidated key, and forgets its failure. */
  detach(key: string): void {
    this.#flight.detach(key);
    this.#failures.delete(key);
  }

  /** Does the same for all keys with the prefix. */
  detachUnder(prefix: string): void {
    this.#flight.detachUnder(prefix);
    this.#failures.deleteUnder(prefix);
  }

  start(task: LoadTask): EntryLoad {
    const startedAt = this.context.clock.now();
    const kept = this.parts.cache.store.get(task.handle.key);
    // Avoids promises, because each adds more time to a miss than parsing the record.
    const answer =
      kept instanceof Promise
        ? kept.then((lookup) => this.#answer(task, lookup, this.context.clock.now()))
        : this.#answer(task, kept, startedAt);
    return { startedAt, kept, answer };
  }

  async #answer(task: LoadTask, kept: Lookup, now: number): Promise<Resolution> {
    const resolution = this.#answerFromEntry(task, kept);
    if (resolution) return resolution;
    const isOnlyCopy = kept.entry !== undefined && !this.parts.isServed(task.handle.key);
    if (task.onlyIfCached && !isOnlyCopy) throw notCached();
    return this.#loadFromUpstream(task, kept, now);
  }

  judge(entry: Entry | undefined): EntryState {
    return judge(entry, this.context.clock.now(), this.parts.cache.trustedSince());
  }

  #answerFromEntry(task: LoadTask, { entry, from }: KeptEntry): Resolution | undefined {
    if (task.authoritative || entry === undefined) return undefined;
    const readAt = this.context.clock.now();
    const state = judge(entry, readAt, this.parts.cache.trustedSince());
    if (state === 'fresh' && entry.requestedAt > task.newerThan) {
      for (const onHit of this.context.hooks.hit) onHit(task.handle, entry);
      return { kind: 'entry', entry, from, readAt };
    }
    if (state === 'stale' && this.#failures.has(task.handle.key))
      return { kind: 'entry', entry, from, readAt, stale: 'backoff' };
    return undefined;
  }

  async #loadFromUpstream(task: LoadTask, kept: Lookup, requestedAt: number): Promise<Resolution> {
    const { key } = task.handle;
    const wallTime = this.context.clock.wall();
    const outcome = await this.#readUpstream(task);
    const { entry } = kept;
    // An entry that a secondary may not have seen yet is served stale instead of the secondary's answer.
    if (
      outcome.isFromSecondary &&
      entry !== undefined &&
      this.judge(entry) === 'stale' &&
      isNewerThanSecondary(entry, requestedAt, this.#ttlBoundsOf(key))
    ) {
      this.#failures.add(key);
      const readAt = this.context.clock.now();
      return { kind: 'entry', entry, from: kept.from, readAt, stale: 'error' };
    }
    if (outcome.kind === 'refused') {
      // Without a server, the stored record is the only one: nothing could bring it back.
      if (entry !== undefined && !this.parts.isServed(key)) return this.#keepForever(key, entry, kept);
      // The server that refuses it no longer vouches for the stored record, for example after its prefix has moved.
      if (task.authoritative) await this.parts.cache.store.forget(key);
      return { kind: 'refused', refused: outcome };
    }
    return this.#storeAnswer(task, kept, outcome, { requestedAt, wallTime });
  }

  /** Makes an entry fresh again that was softly purged or distrusted, until the end of its life. */
  #keepForever(key: string, entry: Entry, { from, ticket }: Lookup): FromEntry | Promise<FromEntry> {
    const fresh = { ...entry, staleAt: entry.deleteAt };
    const resolution: FromEntry = { kind: 'entry', entry: fresh, from, readAt: this.context.clock.now() };
    const storing = this.parts.cache.store.set(key, fresh, ticket, false);
    return storing instanceof Promise ? storing.then(() => resolution) : resolution;
  }

  #storeAnswer(
    task: LoadTask,
    kept: Lookup,
    answer: Answer,
    at: RequestTime,
  ): FromEntry | Promise<FromEntry> {
    const { store } = this.parts.cache;
    const { key } = task.handle;
    const bounds = this.#ttlBoundsOf(key);
    keepLoaded(answer);
    const readAt = this.context.clock.now();
    const entry = makeEntry(answer, at, bounds);
    const resolved = (stored: boolean): FromEntry => ({
      kind: 'entry',
      entry,
      from: 'upstream',
      readAt,
      stored,
    });
    // An answer with TTL 0 evicts the entry (HDLProxy serves it again).
    const isKept = isStorable(entry, readAt);
    if (task.authoritative) return this.#replace(key, kept, entry, isKept).then(resolved);
    const storing = isKept
      ? // Other instances may know of a write that a secondary has not seen yet.
        store.set(key, entry, kept.ticket, !answer.isFromSecondary)
      : kept.entry && store.forget(key);
    if (typeof storing === 'boolean') return resolved(storing);
    storing?.catch(exceptServiceError);
    return resolved(isKept && store.accepts(key, kept.ticket));
  }

  /** Returns whether the entry is stored, once no instance finds an older record. One without public values is not. */
  async #replace(key: string, older: Lookup, entry: Entry, mayKeep: boolean): Promise<boolean> {
    const { store } = this.parts.cache;
    const { ticket } = older;
    const isKept = mayKeep && entry.kind === 'found';
    const isStored = isKept && store.accepts(key, ticket);
    const isUnchanged = hasSameContent(older.entry, entry);
    await store.replace(key, { entry: isKept ? entry : undefined, ticket, isUnchanged });
    return isStored;
  }

  /** @throws ServiceError also for the handle's failure a moment ago, without a request */
  async #readUpstream(task: LoadTask): Promise<Outcome> {
    const { key } = task.handle;
    if (!task.authoritative) this.#failures.assertNone(key);
    try {
      const outcome = await this.parts.upstream.resolve(task);
      this.#failures.delete(key);
      return outcome;
    } catch (failure) {
      this.#failures.add(key, failure);
      throw failure;
    }
  }

  /** Returns the TTL bounds of a key: those of `cache`, some of which depend on its prefix, and those of plugins. */
  #ttlBoundsOf(key: string): TtlBounds {
    const { cache, upstream } = this.settings.current;
    const { found, notFound } = cache;
    const ofPlugins = this.context.hooks.notFoundTtlMs.map((ttlMsOf) => ttlMsOf(key));
    const ttlMs = notFound.ttlMs === 0 ? 0 : Math.max(notFound.ttlMs, ...ofPlugins);
    const staleIfErrorMs = this.parts.staleIfErrorMs(key);
    return { found, notFound: { ttlMs }, staleIfErrorMs, secondaryMaxTtlMs: upstream.secondaryMaxTtlMs };
  }
}

/** Returns the error for a request that wants only a stored response (RFC 9111 section 5.2.1.7). */
export const notCached = (): ServiceError => new ServiceError('NOT_CACHED', { retryAfterMs: 'never' });

/** Ignores a ServiceError, such as an unconfirmed invalidation by a read, which changed no record; rethrows others. */
export function exceptServiceError(failure: unknown): void {
  if (!(failure instanceof ServiceError)) throw failure;
}

/** Maximum number of failed keys; above it, the oldest failed key may be loaded again. */
const MAX_FAILURES = 100_000;

/**
 * Recent failures of loads: the error that all readers share, or true if it says nothing about the handle. Until one
 * expires, its handle is not requested again (RFC 8767 §5, RFC 9520 §3.2).
 */
class FailureCache extends ExpiringMap<ServiceError | true> {
  /** @throws ServiceError the failure that all readers of the key share */
  assertNone(key: string): void {
    const failure = this.get(key);
    if (failure instanceof ServiceError) throw failure;
  }

  add(key: string, failure?: unknown): void {
    const isShared = failure instanceof ServiceError && isOfHandle(failure);
    this.set(key, isShared ? withinBounds(failure) : (this.get(key) ?? true));
  }
}

/** Errors that say nothing about the handle: a busy or paused server, or this proxy's own limits. */
const NOT_OF_HANDLE: readonly unknown[] = ['UPSTREAM_BACKOFF', 'UPSTREAM_BUSY', 'OVERLOADED'];

const isOfHandle = (failure: ServiceError): boolean =>
  !NOT_OF_HANDLE.includes(failure.code) && scopeOf(failure) !== 'connection';

/** Maximum length of cached error members; longer ones are dropped from the cached error. */
const MAX_ANSWER_CHARS = 4096;

function withinBounds(failure: ServiceError): ServiceError {
  const { message, upstreamAnswer } = failure;
  const isShort = JSON.stringify(upstreamAnswer?.members ?? {}).length <= MAX_ANSWER_CHARS;
  return isShort ? failure : new ServiceError(failure, { message });
}
