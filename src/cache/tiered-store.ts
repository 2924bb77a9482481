// The two-tier store that the resolver uses: memory before Redis. It publishes every invalidation.
import type { Ban } from './coherence/bans.js';
import type { Hub } from './coherence/hub.js';
import type { Entry } from './entry.js';
import type { MemoryStore } from './memory/memory-store.js';
import type { RedisStore, RedisTicket } from './redis/store.js';
import type { Fence, Lookup, Store } from './store.js';

export interface TieredTicket {
  memory: number;
  redis: RedisTicket;
}

interface TieredStoreDeps {
  memory: MemoryStore;
  coherence: Pick<Hub, 'publish'>;
  redis?: RedisStore | undefined;
  /** Life of a fence (ms). */
  fenceLifeMs: number;
  /** Maximum TTL of an answer that was loaded without Redis (ms). */
  lostMaxAgeMs?: number | undefined;
  now: () => number;
}

/** `unknown`: stored in memory, and perhaps in Redis. */
type StoreResult = 'stored' | 'refused' | 'unknown';

export class TieredStore implements Store<TieredTicket> {
  readonly #deps: TieredStoreDeps;
  #fences = 0;

  constructor(deps: TieredStoreDeps) {
    this.#deps = deps;
  }

  get(key: string): Lookup<TieredTicket> | Promise<Lookup<TieredTicket>> {
    const { memory, redis } = this.#deps;
    const { entry, ticket } = memory.get(key);
    if (redis === undefined) return { entry, from: 'memory', ticket: { memory: ticket, redis: undefined } };
    return this.#getShared(key, ticket, redis);
  }

  async #getShared(key: string, memory: number, redis: RedisStore): Promise<Lookup<TieredTicket>> {
    const { memory: tier } = this.#deps;
    const far = await redis.get(key);
    const ticket = { memory, redis: far.ticket };
    // Read memory again: the key may have been invalidated while Redis answered.
    const near = tier.peek(key);
    const isNearNewer = near !== undefined && near.requestedAt >= (far.entry?.requestedAt ?? -Infinity);
    if (far.entry === undefined || isNearNewer || !tier.isCurrent(key, memory))
      return { entry: near, from: 'memory', ticket };
    // Not under a fence: if this process has just started, its memory does not know the fence, and the writer may die.
    if (!far.ticket?.isFenced) tier.set(key, far.entry, memory);
    return { entry: far.entry, from: 'redis', ticket };
  }

  accepts(key: string, { memory, redis }: TieredTicket): boolean {
    if (!this.#deps.memory.accepts(key, memory)) return false;
    return redis === undefined || (this.#deps.redis?.accepts(key, redis) ?? true);
  }

  set(key: string, entry: Entry, ticket: TieredTicket): boolean | Promise<boolean> {
    const { memory, redis } = this.#deps;
    if (redis === undefined) return memory.set(key, entry, ticket.memory);
    return this.#store('set', key, entry, ticket).then((result) => result !== 'refused');
  }

  async replace(key: string, entry: Entry, ticket: TieredTicket): Promise<boolean> {
    const result = await this.#store('replace', key, entry, ticket);
    if (result === 'refused') return false;
    // If Redis has not confirmed the entry, it may still hold an older one.
    await this.#deps.coherence.publish({ kind: result === 'stored' ? 'replaced' : 'forget', key });
    return true;
  }

  /** Redis first if it has a fence of the key: the memory of a process that has just started may not know it. */
  async #store(
    how: 'set' | 'replace',
    key: string,
    entry: Entry,
    ticket: TieredTicket,
  ): Promise<StoreResult> {
    const storeInMemory = (): boolean =>
      this.#deps.memory[how](key, this.#bounded(entry, ticket), ticket.memory);
    if (ticket.redis?.isFenced)
      return (await this.#share(key, entry, ticket)) === 'stored' && storeInMemory() ? 'stored' : 'refused';
    return storeInMemory() ? this.#share(key, entry, ticket) : 'refused';
  }

  /** Redis may hold a fence that this process does not know. If its writer is lost, only a short TTL corrects the entry. */
  #bounded(entry: Entry, ticket: TieredTicket): Entry {
    const { redis, lostMaxAgeMs = 0 } = this.#deps;
    if (redis === undefined || ticket.redis !== undefined) return entry;
    return { ...entry, staleAt: Math.min(entry.staleAt, entry.requestedAt + lostMaxAgeMs) };
  }

  /** An entry that Redis refuses does not stay in memory. */
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
    // The entry in Redis is a copy too, and may be older.
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
        // The wall clock may have been set back.
        const lifeMs = Math.min(fenceLifeMs, Math.max(0, Math.ceil(until - now())));
        return coherence.publish({ kind: 'unknown', key, fence, lifeMs });
      },
    };
  }
}
