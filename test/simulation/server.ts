// A process that serves requests: production cache, resolver and write path on simulated servers.
import { partial } from '../support/partial.js';
import { createSend } from '../support/send-write.js';
import { type Cache, type RedisOptions, assembleCache } from '../../src/cache/cache.js';
import { type Entry, RUN_LENGTH } from '../../src/cache/entry.js';
import { judge } from '../../src/cache/policy.js';
import type { Live } from '../../src/config/live.js';
import type { Config } from '../../src/config/schema.js';
import { type Hooks, createHooks } from '../../src/hooks.js';
import { handleRef } from '../../src/handle/handle.js';
import { recordLines } from '../../src/http/cache-headers.js';
import { Resolver } from '../../src/resolver/resolver.js';
import type { WriteAnswer } from '../../src/write/decisions.js';
import type { ChangeFeed, InstanceFeed } from './change-feed.js';
import type { FrontCache, FrontResponse } from './front-cache.js';
import { listedBy, startMirror } from './mirror.js';
import type { Process } from './process.js';
import type { RedisServer } from './redis.js';
import { type Upstream, WRITE_TIMEOUT_MS, versionOf } from './upstream.js';

/** Time within which a timed-out write may still be executed, as in src/cache/cache.ts. */
const FENCE_SPARE_MS = 15_000;
const SECOND_MS = 1000;

const BOUNDS = { maxBytes: 1_000_000, found: { maxEntries: 100 }, notFound: { maxEntries: 100 } };
const SETTINGS = partial<Live<Config>>({
  current: {
    upstream: { retryAfterMs: SECOND_MS, staleAfterMs: 1.5 * SECOND_MS },
    cache: {
      found: { minTtlMs: SECOND_MS, maxTtlMs: 600 * SECOND_MS },
      notFound: { ttlMs: 300 * SECOND_MS },
      refreshAhead: { minHits: 3 },
    },
  },
});

export interface ServerDeps {
  process: Process;
  upstream: Upstream;
  redis: RedisOptions | undefined;
  /** The change feed, if the instance has plugins. */
  changes?: ChangeFeed | undefined;
  front?: FrontCache | undefined;
}

/** The response to a reader. */
export interface Answered {
  entry: Entry;
  version: number;
  isFresh: boolean;
}

export class Server {
  readonly process: Process;
  readonly cache: Cache;
  readonly feed: InstanceFeed | undefined;
  readonly #upstream: Upstream;
  readonly #resolver: Resolver;
  readonly #hooks: Hooks = createHooks();

  constructor({ process, upstream, redis, changes, front }: ServerDeps) {
    this.process = process;
    this.#upstream = upstream;
    const { clock } = process;
    const hooks = this.#hooks;
    const nothing = (): void => undefined;
    this.cache = assembleCache({
      bounds: BOUNDS,
      redis,
      fenceLifeMs: WRITE_TIMEOUT_MS + FENCE_SPARE_MS,
      now: clock.now,
      clock,
      events: hooks,
      onEvict: nothing,
      onRedisState: (state) => {
        process.note(`redis is ${state}`);
      },
    });
    this.#resolver = new Resolver(SETTINGS, partial({ clock, hooks }), {
      cache: this.cache,
      upstream: {
        resolve: ({ handle }) => upstream.read(process, handle.text),
        preferPrimary: undefined,
      },
      staleIfErrorMs: () => 3600 * SECOND_MS,
      isServed: () => true,
      slicer: partial({}),
      refOf: (text) => handleRef(text, false),
    });
    front?.open(process, hooks);
    if (changes === undefined) return;
    this.feed = changes.open(process, this.cache);
    startMirror({ process, upstream, cache: this.cache, resolver: this.#resolver, hooks });
  }

  /** Records the change of a write. */
  get changed(): Hooks['changed'] {
    return this.feed ? [this.feed.record] : [];
  }

  /** Whether all entries count as fresh until their own expiry. */
  get hasLease(): boolean {
    return this.cache.trustedSince() === 0;
  }

  /** Whether the process uses entries of this Redis. */
  readsFrom({ runId }: RedisServer): boolean {
    const { cache } = this;
    if (!cache.isRedisReadable() || cache.commands === undefined) return false;
    return cache.commands.runOf(cache.commands.bansName) === runId.slice(0, RUN_LENGTH);
  }

  /** Reads a record. @throws ServiceError */
  async read(handle: string, authoritative: boolean): Promise<Answered> {
    const resolution = await this.#resolver.resolve(handleRef(handle, false), { authoritative });
    if (resolution.kind === 'refused') throw new Error('the simulated upstream refuses no reads');
    const { entry, stale } = resolution;
    return { entry, version: versionOf(entry), isFresh: stale === undefined };
  }

  /**
   * Writes a record. Resolves with the new version, or undefined for a rejected write. @throws ServiceError
   */
  async write(handle: string): Promise<number | undefined> {
    let version: number | undefined;
    const forward = async (): Promise<WriteAnswer> => {
      version = await this.#upstream.write(this.process, handle);
      return { status: version === undefined ? 403 : 200 };
    };
    const { store } = this.cache;
    await createSend((key) => store.fence(key), handleRef(handle, false), this.changed)([forward]);
    return version;
  }

  /** Purges a handle or a prefix. @throws ServiceError */
  purge(target: { handle: string } | { prefix: string }, isSoft: boolean): Promise<void> {
    const purged = 'handle' in target ? { handle: handleRef(target.handle, false) } : target;
    return this.#resolver.purge(purged, { isSoft });
  }

  /** Responds to a cache in front. @throws ServiceError */
  async respond(handle: string): Promise<FrontResponse> {
    const ref = handleRef(handle, false);
    const resolution = await this.#resolver.resolve(ref, { authoritative: false });
    if (resolution.kind === 'refused') throw new Error('the simulated upstream refuses no reads');
    const { entry, stale } = resolution;
    const [, keys] = stale ? [] : recordLines(partial({ hooks: this.#hooks }), resolution, [ref]);
    return { version: versionOf(entry), keys, ttlMs: entry.staleAt - this.process.clock.now() };
  }

  /** Returns the list that a mirror would serve now; undefined if the request would be forwarded. */
  list(): readonly string[] | undefined {
    return listedBy(this.#hooks);
  }

  /** Returns the entry that would be served as fresh now. */
  fresh(handle: string): Entry | undefined {
    const entry = this.cache.memory.inspect(handleRef(handle, false).key)?.entry;
    return judge(entry, this.process.clock.now(), this.cache.trustedSince()) === 'fresh' ? entry : undefined;
  }
}
