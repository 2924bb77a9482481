// Limits the places in a lock queue: one for a recently refused login, and a share for each network.
import { LRUCache } from 'lru-cache';

export interface Writer {
  /** The identity of the login or, without a login, the network. */
  client: string;
  network: string;
  /** Prefix of the written handle. */
  prefix: string;
}

/**
 * Time for which a login counts as refused (ms). A write that the server refuses holds the lock while others
 * wait.
 */
const REFUSED_FOR_MS = 10_000;
const MAX_REFUSED = 10_000;
/** Maximum places per network: a quarter of a queue (`LockQueue`), because a network may use many logins. */
const MAX_OF_NETWORK = 256;

export class LockPlaces {
  readonly #taken = new Map<string, number>();
  readonly #refused: LRUCache<string, true>;

  /** `now`: any clock (ms). */
  constructor(now: () => number) {
    this.#refused = new LRUCache({
      // The `max` option would preallocate memory for all logins.
      maxSize: MAX_REFUSED,
      sizeCalculation: () => 1,
      ttl: REFUSED_FOR_MS,
      ttlResolution: 0,
      perf: { now },
    });
  }

  /** Takes a place. Returns the function that releases it; undefined if the writer may not wait. */
  take(writer: Writer): (() => void) | undefined {
    const client = clientKey(writer);
    const network = `network ${writer.network}`;
    if (this.#refused.has(client) && this.#count(client) > 0) return undefined;
    if (this.#count(network) >= MAX_OF_NETWORK) return undefined;
    for (const key of [client, network]) this.#taken.set(key, this.#count(key) + 1);
    return () => {
      for (const key of [client, network]) {
        const count = this.#count(key) - 1;
        if (count > 0) this.#taken.set(key, count);
        else this.#taken.delete(key);
      }
    };
  }

  /** Records that the Handle server has refused a write with 401 or 403. */
  refuse(writer: Writer): void {
    this.#refused.set(clientKey(writer), true);
  }

  #count(key: string): number {
    return this.#taken.get(key) ?? 0;
  }
}

const clientKey = ({ client, prefix }: Writer): string => `${prefix} ${client}`;
