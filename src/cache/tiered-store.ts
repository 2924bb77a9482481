// Memory before Redis, and the publication of every invalidation: the store that the resolver uses.
import type { Ban } from './coherence/bans.js';
import type { Coherence } from './coherence/hub.js';
import type { Entry } from './entry.js';
import type { MemoryStore } from './memory/memory-store.js';
import type { RedisStore, RedisTicket } from './redis/store.js';
import type { Fence, Lookup, Store } from './store.js';

export interface TieredTicket {
  memory: number;
  redis: RedisTicket;
}

export interface TieredStoreDeps {
  memory: MemoryStore;
  coherence: Pick<Coherence, 'publish'>;
  redis?: RedisStore | undefined;
  /** How long a write may keep a key from being stored when its end is unknown (ms). */
  fenceLifeMs: number;
  /** How long an answer counts as fresh that was loaded without Redis (ms). */
  lostMaxAgeMs?: number | undefined;
  now: () => number;
}

/** `unknown`: in memory, and perhaps in Redis. */
type StoreResult = 'stored' | 'refused' | 'unknown';

/** Redis decides last: what it refuses to keep does not stay in memory either. */
export class TieredStore implements Store<TieredTicket> {
  readonly #deps: TieredStoreDeps;
  #fences = 0;

  constructor(deps: TieredStoreDeps) {
    this.#deps = deps;
  }

  async get(key: string): Promise<Lookup<TieredTicket>> {
    const { memory: tier, redis } = this.#deps;
    const { entry, ticket: memory } = tier.get(key);
    if (redis === undefined) return { entry, ticket: { memory, redis: undefined } };
    const far = await redis.get(key);
    const ticket = { memory, redis: far.ticket };
    // After the wait: the key may have been invalidated while Redis was asked.
    const near = tier.peek(key);
    const isNearGood = near !== undefined && near.cachedAt >= (far.entry?.cachedAt ?? -Infinity);
    if (far.entry === undefined || isNearGood || !tier.isCurrent(key, memory)) return { entry: near, ticket };
    // Not while a write is in flight: a process that has just started may not know of it, and its writer may die.
    if (!far.ticket?.isFenced) tier.set(key, far.entry, memory);
    return { entry: far.entry, ticket };
  }

  accepts(key: string, { memory, redis }: TieredTicket): boolean {
    if (!this.#deps.memory.accepts(key, memory)) return false;
    return redis === undefined || (this.#deps.redis?.accepts(key, redis) ?? true);
  }

  async set(key: string, entry: Entry, ticket: TieredTicket): Promise<boolean> {
    return (await this.#keep('set', key, entry, ticket)) !== 'refused';
  }

  async replace(key: string, entry: Entry, ticket: TieredTicket): Promise<boolean> {
    const kept = await this.#keep('replace', key, entry, ticket);
    if (kept === 'refused') return false;
    // Where Redis could not store it, Redis may still hold an older one.
    await this.#deps.coherence.publish({ kind: kept === 'stored' ? 'replaced' : 'forget', key });
    return true;
  }

  /** Redis first where it knows of a write in flight: a process that has just started may not. */
  async #keep(how: 'set' | 'replace', key: string, entry: Entry, ticket: TieredTicket): Promise<StoreResult> {
    const keepInMemory = (): boolean =>
      this.#deps.memory[how](key, this.#bounded(entry, ticket), ticket.memory);
    if (ticket.redis?.isFenced)
      return (await this.#share(key, entry, ticket)) === 'stored' && keepInMemory() ? 'stored' : 'refused';
    return keepInMemory() ? this.#share(key, entry, ticket) : 'refused';
  }

  /** Redis may know of a write in flight from before this process began. Nobody tells it of that one if its writer is lost. */
  #bounded(entry: Entry, ticket: TieredTicket): Entry {
    const { redis, lostMaxAgeMs = 0 } = this.#deps;
    if (redis === undefined || ticket.redis !== undefined) return entry;
    return { ...entry, staleAt: Math.min(entry.staleAt, entry.cachedAt + lostMaxAgeMs) };
  }

  /** Without Redis memory is all there is. What Redis refuses does not stay in memory. */
  async #share(key: string, entry: Entry, ticket: TieredTicket): Promise<StoreResult> {
    const { memory, redis } = this.#deps;
    if (redis === undefined) return 'stored';
    const isStored = await redis.set(key, entry, ticket.redis);
    if (isStored === undefined) return 'unknown';
    if (!isStored) memory.forget(key);
    return isStored ? 'stored' : 'refused';
  }

  forget(key: string): Promise<void> {
    return this.#deps.coherence.publish({ kind: 'forget', key });
  }

  forgetCopies(key: string): Promise<void> {
    // That of Redis may be older than that of this process, and is a copy too.
    return this.#deps.coherence.publish({ kind: this.#deps.redis ? 'forget' : 'replaced', key });
  }

  soften(key: string): Promise<void> {
    return this.#deps.coherence.publish({ kind: 'soften', key });
  }

  ban(ban: Ban): Promise<void> {
    return this.#deps.coherence.publish({ kind: 'ban', ...ban, number: 0 });
  }

  async fence(key: string): Promise<Fence> {
    const { coherence, fenceLifeMs, now } = this.#deps;
    const fence = String(++this.#fences);
    const until = now() + fenceLifeMs;
    await coherence.publish({ kind: 'raise', key, fence, lifeMs: fenceLifeMs });
    return {
      changed: () => coherence.publish({ kind: 'changed', key, fence }),
      unchanged: () => coherence.publish({ kind: 'unchanged', key, fence }),
      unknown() {
        // The clock may have been set meanwhile.
        const lifeMs = Math.min(fenceLifeMs, Math.max(0, Math.ceil(until - now())));
        return coherence.publish({ kind: 'unknown', key, fence, lifeMs });
      },
    };
  }
}
