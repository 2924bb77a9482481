// What every tier of the cache can do. It holds no rules about time and knows no HTTP.
import type { WriteOutcome } from '../handle/write-outcome.js';
import type { Entry } from './entry.js';
import type { Sweep } from './sweeps.js';

export type Awaitable<T> = T | Promise<T>;

/** The entry of a key, and the right to store a load that begins now. */
export interface Looked<Ticket> {
  entry: Entry | undefined;
  ticket: Ticket;
}

/**
 * A write in flight. While the fence is up no load is stored; entries stay as they are, because the old
 * record is the right answer until the write is acknowledged. A fence expires, so a writer that is killed
 * cannot block a key for ever; the entries of its key are stale from then on.
 */
export interface Fence extends Record<WriteOutcome, () => Awaitable<void>> {
  /** Invalidates the entry. */
  changed(): Awaitable<void>;
  /** Lowers the fence and nothing else. */
  unchanged(): Awaitable<void>;
  /** Makes the entry stale. The fence stays up until it expires: the upstream may still carry the write out. */
  unknown(): Awaitable<void>;
}

/**
 * A tier. A ticket is opaque; it goes bad when its key is forgotten, so that a record read before a
 * write can never be stored after it (undici's and async-cache-dedupe's caches lose that race).
 */
export interface Store<Ticket> {
  get(key: string): Awaitable<Looked<Ticket>>;
  /** Whether `set` would store with this ticket now, as far as this process knows. */
  accepts(key: string, ticket: Ticket): boolean;
  /** Stores the entry if the ticket is still good. False: it is not; undefined: the tier does not answer. */
  set(key: string, entry: Entry, ticket: Ticket): Awaitable<boolean | undefined>;
  /** As `set`, for an authoritative answer: every other copy, and every load in flight, is older. */
  replace(key: string, entry: Entry, ticket: Ticket): Awaitable<boolean | undefined>;
  /** Drops the entry and makes every ticket given out for the key so far bad. */
  forget(key: string): Awaitable<void>;
  /** The entry may only stand in from now on; every ticket given out for the key so far is bad. */
  soften(key: string): Awaitable<void>;
  /** Forgets or softens many keys at once. */
  sweep(sweep: Sweep): Awaitable<unknown>;
  /**
   * Settles when every other process has obeyed what this one said before, or trusts nothing it keeps.
   * Lowering the fence of a changed record waits for that by itself.
   */
  heard(): Awaitable<void>;
  /** Announces a write: to be awaited before the write is sent. */
  fence(key: string): Awaitable<Fence>;
}
