// An instance of the proxy: a process that has the link to Redis and answers requests.
import type { RedisOptions } from '../../src/cache/cache.js';
import type { DisconnectedWrites } from '../../src/cache/coherence/hub.js';
import { openSimulated } from './ioredis-connections.js';
import type { Network } from './network.js';
import type { Process } from './process.js';
import type { RedisServer } from './redis.js';
import { Server } from './server.js';
import type { Upstream } from './upstream.js';

export interface InstanceDeps {
  process: Process;
  network: Network;
  upstream: Upstream;
  findRedis: () => RedisServer;
  disconnectedWrites: DisconnectedWrites;
  disconnectedMaxAgeMs: number;
  commandTimeoutMs: number;
}

export class Instance {
  readonly process: Process;
  readonly #deps: InstanceDeps;
  #server: Server | undefined;
  /** When it was started, or had a lease last. */
  linkedAt = 0;
  /** Whether another one has had a lease since, and need not wait for a report of this one any longer. */
  wasAlone = false;
  /** Since when it and Redis have been able to reach each other. */
  reachesRedisSince = 0;
  /** When it could not use the entries of Redis last. */
  withoutRedisAt = 0;

  constructor(deps: InstanceDeps) {
    this.#deps = deps;
    this.process = deps.process;
  }

  get name(): string {
    return this.process.name;
  }

  /** What answers requests; undefined while it is not started. */
  get server(): Server | undefined {
    return this.process.isAlive ? this.#server : undefined;
  }

  start(): void {
    if (this.#server) return;
    this.process.start();
    this.linkedAt = this.process.virtualMs;
    const { process, upstream } = this.#deps;
    this.#server = new Server({ process, upstream, redis: this.#redisOptions() });
  }

  get hasLease(): boolean {
    return this.server?.hasLease === true;
  }

  kill(): void {
    this.process.kill();
    this.#server = undefined;
  }

  #redisOptions(): RedisOptions {
    const { process, network, findRedis, disconnectedWrites, disconnectedMaxAgeMs, commandTimeoutMs } =
      this.#deps;
    return {
      keyPrefix: 'p:',
      commandTimeoutMs,
      disconnectedMaxAgeMs,
      disconnectedWrites,
      open: (place) => openSimulated({ network, process, findServer: findRedis }, place),
    };
  }
}
