// Memory before Redis: what is found in Redis is kept in memory too, what is forgotten is forgotten in both.
import type { Entry } from './entry.js';
import type { RedisStore, RedisTicket } from './redis-store.js';
import type { Fence, Looked, Store } from './store.js';
import type { Sweep } from './sweeps.js';

export interface TwoTierTicket {
  memory: number;
  redis: RedisTicket;
}

/** The memory tier: alone, or with the other workers of the machine. */
export interface NearStore extends Store<number> {
  peek(key: string): Entry | undefined;
  get(key: string): Looked<number>;
  isCurrent(key: string, ticket: number): boolean;
  set(key: string, entry: Entry, ticket: number): boolean;
  sweep(sweep: Sweep, number?: number): Promise<void> | void;
}

/** Both tiers as one. Redis decides last: what it refuses to keep does not stay in memory either. */
export class TwoTierStore implements Store<TwoTierTicket> {
  readonly #memory: NearStore;
  readonly #redis: RedisStore;

  constructor(memory: NearStore, redis: RedisStore) {
    this.#memory = memory;
    this.#redis = redis;
  }

  async get(key: string): Promise<Looked<TwoTierTicket>> {
    const { ticket: memory } = this.#memory.get(key);
    const far = await this.#redis.get(key);
    const ticket = { memory, redis: far.ticket };
    // After the wait: the key may have been invalidated while Redis was asked.
    const near = this.#memory.peek(key);
    if (far.entry === undefined || (near && near.cachedAt >= far.entry.cachedAt))
      return { entry: near, ticket };
    if (!this.#memory.isCurrent(key, memory)) return { entry: near, ticket };
    // Not while a write is in flight: a process that has just started may not know of it, and its writer may die.
    if (!far.ticket?.isFenced) this.#memory.set(key, far.entry, memory);
    return { entry: far.entry, ticket };
  }

  accepts(key: string, ticket: TwoTierTicket): boolean {
    const { memory, redis } = ticket;
    return this.#memory.accepts(key, memory) && (redis === undefined || this.#redis.accepts(key, redis));
  }

  async set(key: string, entry: Entry, ticket: TwoTierTicket): Promise<boolean> {
    const kept = this.#memory.set(key, entry, ticket.memory);
    if (!kept || ticket.redis === undefined) return kept;
    const shared = await this.#redis.set(key, entry, ticket.redis);
    if (shared === false) await this.#memory.forget(key);
    return shared !== false;
  }

  async replace(key: string, entry: Entry, ticket: TwoTierTicket): Promise<boolean> {
    const kept = await this.#memory.replace(key, entry, ticket.memory);
    if (kept === false) return false;
    const shared = await this.#redis.replace(key, entry, ticket.redis);
    if (shared === false) await this.#memory.forget(key);
    return shared !== false;
  }

  async forget(key: string): Promise<void> {
    await this.#memory.forget(key);
    await this.#redis.forget(key);
    // What Redis gave in between may be in memory again.
    await this.#memory.forget(key);
  }

  async soften(key: string): Promise<void> {
    await this.#redis.soften(key);
    await this.#memory.soften(key);
  }

  /** Redis first: what it gave before is then taken out of memory, or not put there. */
  async sweep(sweep: Sweep): Promise<void> {
    const number = await this.#redis.sweep(sweep);
    await this.#memory.sweep(sweep, number);
  }

  heard(): Promise<void> {
    return this.#redis.heard();
  }

  /** Here first, then everywhere; lowered everywhere before the write is acknowledged. */
  async fence(key: string): Promise<Fence> {
    const near = await this.#memory.fence(key);
    const far = await this.#redis.fence(key);
    return {
      changed: async () => {
        await near.changed();
        await far.changed();
      },
      unchanged: async () => {
        await near.unchanged();
        await far.unchanged();
      },
      unknown: async () => {
        await near.unknown();
        await far.unknown();
      },
    };
  }
}
