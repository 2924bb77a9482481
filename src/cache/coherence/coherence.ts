// What the cache of a process needs of coherence, whether its hub is in this process or in the primary.
import type { Change } from './message.js';

export interface Coherence {
  /**
   * Publishes a change to every process that caches. Settles when no instance answers with what it invalidates. The name
   * of a fence is unique in its process.
   *
   * @throws ServiceError NOT_CONFIRMED when that cannot be known (`redis.writesWithout: refuse`)
   */
  publish: (change: Change) => Promise<void>;
  /** Entries from before this moment (ms since the epoch) do not count as fresh. */
  trustedSince: () => number;
  /** Whether the changes of other instances are received. */
  isLinked: () => boolean;
}
