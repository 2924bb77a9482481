// The store contract: look up, store and invalidate entries by key. It knows no rules of freshness and no HTTP.
import type { WriteOutcome } from '../handle/outcome.js';
import type { Ban } from './coherence/bans.js';
import type { Entry } from './entry.js';

type Awaitable<T> = T | Promise<T>;

/** The entry of a key, and a ticket with which a load that begins now may be stored. */
export interface Lookup<Ticket> {
  entry: Entry | undefined;
  /** The tier that holds the entry. */
  from: 'memory' | 'redis';
  ticket: Ticket;
}

export interface AuthoritativeAnswer<Ticket> {
  /** Stored if the ticket is still valid; undefined if there is nothing to store. */
  entry: Entry | undefined;
  ticket: Ticket;
  /** Whether this instance already had the same record: then an unavailable Redis is not waited for. */
  isUnchanged: boolean;
}

/**
 * The fence of a write in flight. While it is raised no load of the key is stored; readers keep their hits, because the old
 * record is right until the write is acknowledged. A fence expires, so that a writer that is killed cannot block its key;
 * the entry is stale from then on.
 */
export interface Fence extends Record<WriteOutcome, () => Promise<void>> {
  /** Lowers the fence and invalidates the entry on every instance; then the write may be acknowledged. */
  changed(): Promise<void>;
  /** Lowers the fence. */
  unchanged(): Promise<void>;
  /** Makes the entry stale. The fence stays raised until it expires, because the upstream may still carry out the write. */
  unknown(): Promise<void>;
}

/**
 * A ticket becomes invalid when its key is invalidated, so that a record read before a write is never stored after it
 * (the caches of undici and async-cache-dedupe lose that race). Invalidations settle when no instance answers with
 * invalidated entries any more.
 */
export interface Store<Ticket> {
  get(key: string): Awaitable<Lookup<Ticket>>;
  /** Whether `set` would store with this ticket, as far as this process knows. */
  accepts(key: string, ticket: Ticket): boolean;
  /** Stores the entry if the ticket is still valid. */
  set(key: string, entry: Entry, ticket: Ticket): Awaitable<boolean>;
  /** Takes an authoritative answer: invalidates other copies and loads in flight, which are older. */
  replace(key: string, answer: AuthoritativeAnswer<Ticket>): Promise<void>;
  /** Deletes the entry and invalidates all tickets of the key. */
  forget(key: string): Promise<void>;
  /** Makes the entry stale and invalidates all tickets of the key. */
  soften(key: string): Promise<void>;
  /** Deletes all keys with a prefix, or makes them stale. */
  ban(ban: Ban): Promise<void>;
  /** Raises a fence; await it before the write is sent. */
  fence(key: string): Promise<Fence>;
}

/** Identifies an entry in memory, so that it can be used again without a look-up. */
export interface EntryPin {
  /** The row of the entry. */
  at: number;
  /** Unique for each state of each entry. */
  stamp: number;
}

/** The memory tier, for responses that were prepared from its entries. */
export interface PinnedEntries {
  /** Undefined when memory holds another entry of the key, or none. */
  pin(key: string, entry: Entry): EntryPin | undefined;
  /** Whether memory would return the pinned entry now. Counts as a use of it; cheaper than a look-up. */
  touchIfCurrent(key: string, pin: EntryPin): boolean;
}
