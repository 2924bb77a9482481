// An instance of the proxy: a process with a Redis link that serves requests.
import type { RedisOptions } from '../../src/cache/cache.js';
import type { DisconnectedWrites } from '../../src/cache/link/hub.js';
import { openSimulated } from './ioredis-connections.js';
import type { ChangeFeed } from './change-feed.js';
import type { FrontCache } from './front-cache.js';
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
  isCluster: boolean;
  changes?: ChangeFeed | undefined;
  front?: FrontCache | undefined;
}

export class Instance {
  readonly process: Process;
  readonly #deps: InstanceDeps;
  #server: Server | undefined;
  /** Time at which the instance was started, or last had a lease if that is later. */
  linkedAt = 0;
  /**
   * Whether a different instance has held a lease since `linkedAt`, and no longer waits for this instance.
   */
  wasAlone = false;
  /** Time since which the instance and Redis can reach each other. */
  reachesRedisSince = 0;
  /** Last time at which the instance could not use Redis entries. */
  withoutRedisAt = 0;

  constructor(deps: InstanceDeps) {
    this.#deps = deps;
    this.process = deps.process;
  }

  get name(): string {
    return this.process.name;
  }

  /** The request server, or undefined before the start and after a kill. */
  get server(): Server | undefined {
    return this.process.isAlive ? this.#server : undefined;
  }

  start(): void {
    if (this.#server) return;
    this.process.start();
    this.linkedAt = this.process.virtualMs;
    const { process, upstream, changes, front } = this.#deps;
    this.#server = new Server({ process, upstream, changes, front, redis: this.#redisOptions() });
  }

  get hasLease(): boolean {
    return this.server?.hasLease === true;
  }

  kill(): void {
    this.process.kill();
    this.#server = undefined;
  }

  #redisOptions(): RedisOptions {
    const { process, network, findRedis, isCluster, ...options } = this.#deps;
    const { disconnectedWrites, disconnectedMaxAgeMs, commandTimeoutMs } = options;
    return {
      keyPrefix: 'p:',
      commandTimeoutMs,
      disconnectedMaxAgeMs,
      disconnectedWrites,
      open: (place) => openSimulated({ network, process, findServer: findRedis, isCluster }, place),
    };
  }
}
