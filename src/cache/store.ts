// What every tier of the cache can do. It holds no rules about time and knows no HTTP.
import type { Entry } from './entry.js';
import type { Sweep } from './sweeps.js';

export type Awaitable<T> = T | Promise<T>;

/** What is kept under a key, and the right to store what is loaded from this moment on. */
export interface Looked<Ticket> {
  entry: Entry | undefined;
  ticket: Ticket;
}

/**
 * A write under way. Until it is lowered nothing that is loaded is stored, and what is kept does not
 * count as fresh. It has a life, so a writer that is killed cannot block a key for ever.
 */
export interface Fence {
  /** The write changed the record, or may have: forget it. */
  changed(): Awaitable<void>;
  /** The write was refused: what is kept is as good as before. */
  unchanged(): Awaitable<void>;
  /**
   * Nobody knows, and the upstream may still carry the write out: what is kept may only stand in for
   * a failing upstream, and nothing is stored until the fence has run out.
   */
  unknown(): Awaitable<void>;
}

/**
 * A tier. A ticket is opaque; it goes bad when its key is forgotten, so that a record read before a
 * write can never be stored after it (undici's and async-cache-dedupe's caches lose that race).
 */
export interface Store<Ticket> {
  get(key: string): Awaitable<Looked<Ticket>>;
  /** Stores the entry if the ticket is still good. False: it is not; undefined: the tier does not answer. */
  set(key: string, entry: Entry, ticket: Ticket): Awaitable<boolean | undefined>;
  /** As `set`, for what was asked for on purpose: whatever anybody else keeps or is loading is older. */
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
