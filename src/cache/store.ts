// Types of the store: lookups and their tickets, fences, pins, and the events of entries.
import type { WriteOutcome } from '../handle/outcome.js';
import type { Entry, LoadOrigin } from './entry.js';

export interface KeptEntry {
  entry: Entry | undefined;
  /** The tier that holds the entry. */
  from: 'memory' | 'redis';
}

/** The entry of a key, and a ticket for storing a load that starts now. */
export interface Lookup<TierTicket = Ticket> extends KeptEntry {
  ticket: TierTicket;
}

/** The state of both tiers at the start of a load. */
export interface Ticket {
  memory: number;
  redis: RedisTicket;
}

/** The Redis state at the start of a load; undefined if Redis could not be read. */
export type RedisTicket =
  | (LoadOrigin & {
      bansRun: string;
      seq: number;
      isFenced: boolean;
      /** Redis clock minus the time of this process (ms), by a clock of Redis that is not ahead. */
      redisClockMs: number;
    })
  | undefined;

export interface AuthoritativeAnswer {
  /** Stored if the ticket is still valid; undefined if there is nothing to store. */
  entry: Entry | undefined;
  ticket: Ticket;
  /** Whether this instance already had an identical record; if so, an unavailable Redis is not awaited. */
  isUnchanged: boolean;
}

/**
 * The fence of a write in flight. While it is raised, no load of the key is stored; readers keep their hits,
 * because the old record is correct until the write is acknowledged. A fence expires, so that a killed writer
 * cannot block its key; the entry then becomes stale.
 */
export interface Fence extends Record<WriteOutcome, () => Promise<void>> {
  /** Lowers the fence and invalidates the entry on every instance. Acknowledge the write only after this settles. */
  changed(): Promise<void>;
  /** Lowers the fence and keeps the entry. */
  unchanged(): Promise<void>;
  /** Makes the entry stale. The fence stays until it expires, because the upstream may still execute the write. */
  unknown(): Promise<void>;
  /**
   * Counts the lifetime from now, as `unknown` applies it. Call it before each further request of a write, because the
   * upstream may execute the last one as late after it was sent as the first.
   */
  extend(): void;
}

/** Identifies an entry in memory, which can then be used again without a lookup. */
export interface EntryPin {
  /** The row of the entry. */
  at: number;
  /** Changes whenever the entry changes; never reused. */
  stamp: number;
}

/** A deletion by a write or an operator: of one entry, or of all entries with a prefix. */
export type Deleted = { key: string } | { prefix: string };

/** Creates an empty list of hooks, which are called in order. */
export const hookList = <T>(): T[] => [];

/** Functions to call when entries change. */
export type StoreEvents = ReturnType<typeof createStoreEvents>;

export const createStoreEvents = () => ({
  /** A record has changed or is no longer trusted: new readers must not join its load in flight. */
  invalidated: hookList<(key: string) => void>(),
  /** The same for all records whose keys start with `prefix`. */
  banned: hookList<(prefix: string) => void>(),
  /** An operator has purged all records whose keys start with `prefix`, through any instance, while this process runs. */
  purged: hookList<(prefix: string) => void>(),
  /** A write or an operator has deleted entries of this instance. It is acknowledged once the promises settle. */
  deleted: hookList<(deleted: Deleted) => Promise<void>>(),
  /** A write by any instance has been applied to the memory of this instance. */
  written: hookList<(key: string) => void>(),
  /**
   * All instances have applied an invalidation of this instance, or it has failed. The write or purge that caused it waits.
   *
   * @throws ServiceError INVALIDATION_UNCONFIRMED
   */
  published: hookList<(deleted: Deleted) => Promise<void>>(),
});
