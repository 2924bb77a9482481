// The run id of each Redis server: a server that was restarted, or a replica that has taken over, has another one.
import slotOf from 'cluster-key-slot';
import type { Redis } from 'ioredis';
import { RUN_LENGTH } from '../entry.js';
import type { RedisConnections } from './connections.js';

/** Sharded channels need it. */
const MIN_CLUSTER_VERSION = 7;

export class ServerRuns {
  readonly #connections: RedisConnections;
  readonly #onEvictionPolicy: ((policy: string) => void) | undefined;
  readonly #runs = new Map<Redis, string>();
  #hasWarned = false;

  /** `onEvictionPolicy`: called once, with the eviction policy, when Redis may evict keys other than entries. */
  constructor(connections: RedisConnections, onEvictionPolicy: ((policy: string) => void) | undefined) {
    this.#connections = connections;
    this.#onEvictionPolicy = onEvictionPolicy;
  }

  /** Whether every master is connected, and its run is known. */
  areKnown(): boolean {
    try {
      return this.#connections.masters().every(({ client }) => this.#runs.has(client));
    } catch {
      return false;
    }
  }

  /** The run of the server that holds the key; undefined when it is not known. */
  ofKey(name: string): string | undefined {
    const { isCluster, commands, clientOf } = this.#connections;
    const client = isCluster ? clientOf(slotOf(name)) : commands;
    return client && this.#runs.get(client);
  }

  clear(): void {
    this.#runs.clear();
  }

  /** Pings every master, and reads the run of those that are new. @throws Error when one does not answer */
  async check(): Promise<void> {
    const masters = this.#connections.masters();
    for (const client of this.#runs.keys())
      if (!masters.some((master) => master.client === client)) this.#runs.delete(client);
    await Promise.all(
      masters.map(async ({ client }) => {
        if (this.#runs.has(client)) await client.ping();
        else await this.#read(client);
      }),
    );
  }

  async #read(client: Redis): Promise<void> {
    const info = await client.info();
    const fieldOf = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
    if (this.#connections.isCluster && Number.parseInt(fieldOf('redis_version')) < MIN_CLUSTER_VERSION)
      throw new Error(`a Redis Cluster needs version ${MIN_CLUSTER_VERSION} or newer, for sharded channels`);
    client.once('close', () => this.#runs.delete(client));
    this.#runs.set(client, fieldOf('run_id').slice(0, RUN_LENGTH));
    if (fieldOf('maxmemory') !== '0') this.#checkEviction(fieldOf('maxmemory_policy'));
  }

  /**
   * Without the members list each write waits for the lease, and without the states of their groups no entry is used.
   * Locks have a TTL as entries do, a shorter one: only `volatile-lru` never takes them for the oldest key.
   */
  #checkEviction(policy: string): void {
    if (this.#hasWarned || policy === 'noeviction' || policy === 'volatile-lru') return;
    this.#hasWarned = true;
    this.#onEvictionPolicy?.(policy);
  }
}
