// Memory before Redis, and the publication of every invalidation: the store that the resolver uses.
import type { Ban } from './coherence/bans.js';
import type { Coherence } from './coherence/coherence.js';
import type { Entry } from './entry.js';
import type { MemoryStore } from './memory-store.js';
import type { RedisStore, RedisTicket } from './redis/store.js';
import type { Fence, Looked, Store } from './store.js';

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
  now: () => number;
}

/** Redis decides last: what it refuses to keep does not stay in memory either. */
export class TieredStore implements Store<TieredTicket> {
  readonly #deps: TieredStoreDeps;
  #fences = 0;

  constructor(deps: TieredStoreDeps) {
    this.#deps = deps;
  }

  async get(key: string): Promise<Looked<TieredTicket>> {
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

  set(key: string, entry: Entry, ticket: TieredTicket): Promise<boolean> {
    return this.#keepShared(key, entry, { ticket, isKept: this.#deps.memory.set(key, entry, ticket.memory) });
  }

  async replace(key: string, entry: Entry, ticket: TieredTicket): Promise<boolean> {
    const isKept = this.#deps.memory.replace(key, entry, ticket.memory);
    if (!(await this.#keepShared(key, entry, { ticket, isKept }))) return false;
    await this.#deps.coherence.publish({ kind: 'replaced', key });
    return true;
  }

  async #keepShared(
    key: string,
    entry: Entry,
    { ticket, isKept }: { ticket: TieredTicket; isKept: boolean },
  ): Promise<boolean> {
    const { memory, redis } = this.#deps;
    if (!isKept || redis === undefined || ticket.redis === undefined) return isKept;
    const isShared = await redis.set(key, entry, ticket.redis);
    if (isShared === false) memory.forget(key);
    return isShared !== false;
  }

  forget(key: string): Promise<void> {
    return this.#deps.coherence.publish({ kind: 'forget', key });
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
      unknown: () =>
        coherence.publish({ kind: 'unknown', key, fence, lifeMs: Math.max(0, Math.ceil(until - now())) }),
    };
  }
}
