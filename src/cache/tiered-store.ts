// The two-tier store of the resolver: memory before Redis. Publishes every invalidation.
import type { Ban } from './coherence/bans.js';
import type { Change } from './coherence/message.js';
import { type Entry, hasSameContent } from './entry.js';
import type { Hub } from './link/hub.js';
import type { MemoryStore } from './memory/memory-store.js';
import type { RedisStore } from './redis/store.js';
import type { AuthoritativeAnswer, Deleted, Fence, Lookup, StoreEvents, Ticket } from './store.js';

interface TieredStoreDeps {
  memory: MemoryStore;
  hub: Hub;
  redis?: RedisStore | undefined;
  events?: StoreEvents;
  /** Fence lifetime (ms). */
  fenceLifeMs: number;
  /** Maximum TTL of answers loaded without Redis (ms). */
  disconnectedMaxAgeMs?: number | undefined;
  now: () => number;
}

/**
 * Looks up, stores and invalidates entries by key, without freshness rules. A ticket becomes invalid when its key is
 * invalidated, so that a record read before a write is never stored after it (the caches of undici and
 * async-cache-dedupe lose that race). Invalidations settle once no instance serves invalidated entries.
 */
export class TieredStore {
  #fences = 0;

  constructor(private readonly deps: TieredStoreDeps) {}

  get(key: string): Lookup | Promise<Lookup> {
    const { memory, redis } = this.deps;
    const { entry, ticket } = memory.get(key);
    if (redis === undefined) return { entry, from: 'memory', ticket: { memory: ticket, redis: undefined } };
    return this.#getShared(key, ticket, redis);
  }

  async #getShared(key: string, memory: number, redis: RedisStore): Promise<Lookup> {
    const { memory: tier } = this.deps;
    const far = await redis.get(key);
    const ticket = { memory, redis: far.ticket };
    // Read memory again: the key may have been invalidated while Redis replied.
    const near = tier.peek(key);
    const isNearNewer = near !== undefined && near.requestedAt >= (far.entry?.requestedAt ?? -Infinity);
    if (far.entry === undefined || isNearNewer || !tier.isCurrent(key, memory))
      return { entry: near, from: 'memory', ticket };
    // Fenced entries stay out of memory: a newly started process does not know the fence, whose writer may die.
    if (!far.ticket?.isFenced) tier.set(key, far.entry, memory);
    return { entry: far.entry, from: 'redis', ticket };
  }

  /** Whether `set` would store with this ticket, as far as this process knows. */
  accepts(key: string, { memory, redis }: Ticket): boolean {
    if (!this.deps.memory.accepts(key, memory)) return false;
    return redis === undefined || (this.deps.redis?.accepts(key, redis) ?? true);
  }

  /** `isForAll`: whether other instances may use the entry too. */
  set(key: string, entry: Entry, ticket: Ticket, isForAll = true): boolean | Promise<boolean> {
    const { memory, redis } = this.deps;
    if (redis === undefined) return memory.set(key, entry, ticket.memory);
    if (isForAll) return this.#store(key, entry, ticket);
    return ticket.redis?.isFenced !== true && memory.set(key, this.#bounded(entry, ticket), ticket.memory);
  }

  /** Stores an authoritative answer, and invalidates other copies and loads in flight, which are older. */
  async replace(key: string, answer: AuthoritativeAnswer): Promise<void> {
    const { redis } = this.deps;
    const { entry, ticket, isUnchanged } = answer;
    const kept = this.#keepInMemory(key, answer);
    const isInMemory = kept !== undefined || this.#holds(key, entry);
    if (redis === undefined && isInMemory) return isUnchanged ? undefined : this.#afterPublication({ key });
    const replacement = kept && redis?.replacement(key, kept, ticket.redis);
    const published = this.#publish({ kind: 'forget', key, replacement, isUnchanged });
    if (!isUnchanged || !this.#wasAway(ticket)) return published;
    // The publication is not awaited, so an entry stored by a concurrent load is deleted now.
    if (!isInMemory) this.deps.memory.forget(key);
  }

  /** Whether Redis was unavailable, rather than lacking the group state of the key. */
  #wasAway(ticket: Ticket): boolean {
    return ticket.redis === undefined && this.deps.redis?.isReadable() !== true;
  }

  /** Keeps an authoritative answer; nothing after a concurrent one or a write, as it is unknown which is newer. */
  #keepInMemory(key: string, { entry, ticket }: AuthoritativeAnswer): Entry | undefined {
    if (entry === undefined || ticket.redis?.isFenced) return undefined;
    const isKept = this.deps.memory.replace(key, this.#bounded(entry, ticket), ticket.memory);
    return isKept ? entry : undefined;
  }

  #holds(key: string, entry: Entry | undefined): boolean {
    return entry !== undefined && hasSameContent(this.deps.memory.peek(key), entry);
  }

  /** Stores an entry, in Redis first if the key has a fence there: a newly started process does not know the fence. */
  async #store(key: string, entry: Entry, ticket: Ticket): Promise<boolean> {
    const storeInMemory = (): boolean =>
      this.deps.memory.set(key, this.#bounded(entry, ticket), ticket.memory);
    if (ticket.redis?.isFenced) return (await this.#share(key, entry, ticket)) === true && storeInMemory();
    return storeInMemory() && (await this.#share(key, entry, ticket)) !== false;
  }

  /**
   * Limits the TTL of an answer loaded without Redis, which may have a fence that this process does not know.
   * If the writer of that fence is lost, only a short TTL corrects the entry.
   */
  #bounded(entry: Entry, ticket: Ticket): Entry {
    const { redis, disconnectedMaxAgeMs = 0 } = this.deps;
    if (redis === undefined || ticket.redis !== undefined) return entry;
    return { ...entry, staleAt: Math.min(entry.staleAt, entry.requestedAt + disconnectedMaxAgeMs) };
  }

  /** Stores an entry in Redis, and deletes it from memory if Redis refuses it. */
  async #share(key: string, entry: Entry, ticket: Ticket): Promise<boolean | undefined> {
    const { memory, redis } = this.deps;
    const isStored = await redis?.set(key, entry, ticket.redis);
    if (isStored === false) memory.forget(key);
    return isStored;
  }

  /** Publishes an invalidation, and waits for those that hold answers outside the instances. */
  async #publish(change: Change): Promise<void> {
    try {
      await this.deps.hub.publish(change);
    } finally {
      if (change.kind !== 'forget' || change.isUnchanged !== true) await this.#afterPublication(change);
    }
  }

  async #afterPublication(deleted: Deleted): Promise<void> {
    await Promise.all((this.deps.events?.published ?? []).map((each) => each(deleted)));
  }

  forget(key: string): Promise<void> {
    return this.#publish({ kind: 'forget', key });
  }

  soften(key: string): Promise<void> {
    return this.#publish({ kind: 'soften', key });
  }

  ban(ban: Ban): Promise<void> {
    return this.#publish({ kind: 'ban', ...ban, number: 0 });
  }

  /** Raises a fence. Await it before sending the write. */
  async fence(key: string): Promise<Fence> {
    const { hub, fenceLifeMs, now } = this.deps;
    const fence = String(++this.#fences);
    let until = now() + fenceLifeMs;
    await hub.publish({ kind: 'raise', key, fence, lifeMs: fenceLifeMs });
    return {
      changed: () => this.#publish({ kind: 'changed', key, fence }),
      unchanged: () => hub.publish({ kind: 'unchanged', key, fence }),
      unknown: () => {
        // The lifetime is clamped, because the wall clock may have been set back.
        const lifeMs = Math.min(fenceLifeMs, Math.max(0, Math.ceil(until - now())));
        return this.#publish({ kind: 'unknown', key, fence, lifeMs });
      },
      extend: () => {
        until = now() + fenceLifeMs;
      },
    };
  }
}
