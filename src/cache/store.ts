// What the resolver needs of the cache. It holds no rules about time and knows no HTTP.
import type { WriteOutcome } from '../handle/write-outcome.js';
import type { Ban } from './coherence/bans.js';
import type { Entry } from './entry.js';

export type Awaitable<T> = T | Promise<T>;

/** The entry of a key, and the right to store a load that begins now. */
export interface Lookup<Ticket> {
  entry: Entry | undefined;
  ticket: Ticket;
}

/**
 * A write in flight. While the fence is up no load is stored; entries stay as they are, because the old
 * record is the right answer until the write is acknowledged. A fence expires, so a writer that is killed
 * cannot block a key for ever; the entries of its key are stale from then on.
 */
export interface Fence extends Record<WriteOutcome, () => Promise<void>> {
  /** Invalidates the entry on every instance; then the write may be acknowledged. */
  changed(): Promise<void>;
  /** Lowers the fence and nothing else. */
  unchanged(): Promise<void>;
  /** Makes the entry stale. The fence stays up until it expires: the upstream may still carry the write out. */
  unknown(): Promise<void>;
}

/**
 * A ticket is opaque; it goes bad when its key is invalidated, so that a record read before a write can never be
 * stored after it (undici's and async-cache-dedupe's caches lose that race). Invalidations settle when no instance
 * answers with what was invalidated.
 */
export interface Store<Ticket> {
  get(key: string): Awaitable<Lookup<Ticket>>;
  /** Whether `set` would store with this ticket now, as far as this process knows. */
  accepts(key: string, ticket: Ticket): boolean;
  /** Stores the entry if the ticket is still good. */
  set(key: string, entry: Entry, ticket: Ticket): Awaitable<boolean>;
  /** As `set`, for an authoritative answer: every other copy, and every load in flight, is older. */
  replace(key: string, entry: Entry, ticket: Ticket): Promise<boolean>;
  /** Drops the entry and makes every ticket given out for the key so far bad. */
  forget(key: string): Promise<void>;
  /** Drops every other copy of the entry: what is kept here is newer, and stays where that can be told apart. */
  forgetCopies(key: string): Promise<void>;
  /** The entry may only stand in from now on; every ticket given out for the key so far is bad. */
  soften(key: string): Promise<void>;
  /** Forgets or softens many keys at once. */
  ban(ban: Ban): Promise<void>;
  /** Announces a write: to be awaited before the write is sent. */
  fence(key: string): Promise<Fence>;
}
