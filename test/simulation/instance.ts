// An instance of the proxy: one process that has the link to Redis and answers requests, or a primary and its workers.
import type { RedisOptions } from '../../src/cache/instance.js';
import type { WritesWithout } from '../../src/cache/coherence/hub.js';
import { Crew } from './crew.js';
import { openSimulated } from './ioredis-connections.js';
import type { Network } from './network.js';
import type { Pause, Process } from './process.js';
import type { RedisServer } from './redis.js';
import { Server } from './server.js';
import type { Upstream } from './upstream.js';

export interface InstanceDeps {
  process: Process;
  /** None: the one process answers requests. */
  workers: readonly Process[];
  network: Network;
  upstream: Upstream;
  findRedis: () => RedisServer;
  writesWithout: WritesWithout;
  lostMaxAgeMs: number;
  commandTimeoutMs: number;
}

export class Instance {
  readonly process: Process;
  readonly #deps: InstanceDeps;
  #server: Server | undefined;
  #crew: Crew | undefined;
  /** When it was started, or had a lease last. */
  linkedAt = 0;
  /** Whether another one has had a lease since, and need not wait for a report of this one any longer. */
  wasAlone = false;
  /** Since when it and Redis have been able to reach each other. */
  reachesRedisSince = 0;
  /** When a pause ended that none of its clocks shows. */
  unnoticedUntil = -Infinity;
  /** Until then its wall clock shows again what it showed before it was put back. */
  isEarlierUntil = -Infinity;

  constructor(deps: InstanceDeps) {
    this.#deps = deps;
    this.process = deps.process;
  }

  get name(): string {
    return this.process.name;
  }

  /** The processes that answer requests; none while it is not started. */
  get servers(): readonly Server[] {
    if (!this.process.isAlive) return [];
    return this.#crew?.servers ?? (this.#server ? [this.#server] : []);
  }

  /** All of the machine. */
  get processes(): Process[] {
    return [this.process, ...this.#deps.workers];
  }

  start(): void {
    if (this.#server ?? this.#crew) return;
    this.process.start();
    this.linkedAt = this.process.virtualMs;
    const { process, upstream, network, workers } = this.#deps;
    const redisFor = (each: Process): RedisOptions => this.#redisOptions(each);
    if (workers.length === 0) this.#server = new Server({ process, upstream, redis: redisFor(process) });
    else this.#crew = new Crew({ primary: process, workers, network, upstream, redisFor });
  }

  stepClock(ms: number, now: number): void {
    for (const process of this.processes) process.stepWallClock(ms);
    this.isEarlierUntil = now - ms;
  }

  get hasLease(): boolean {
    return this.servers.some((server) => server.hasLease);
  }

  /** Of a machine that is suspended all processes are paused. */
  pause(kind: Pause): void {
    for (const process of this.processes) process.pause(kind);
    if (kind === 'unnoticed') this.unnoticedUntil = Infinity;
  }

  resume(now: number): void {
    for (const process of this.processes) process.resume();
    if (this.unnoticedUntil === Infinity) this.unnoticedUntil = now;
  }

  kill(): void {
    for (const process of this.processes) process.kill();
    this.#server = undefined;
    this.#crew = undefined;
  }

  #redisOptions(process: Process): RedisOptions {
    const { network, findRedis, writesWithout, lostMaxAgeMs, commandTimeoutMs } = this.#deps;
    return {
      keyPrefix: 'p:',
      commandTimeoutMs,
      lostMaxAgeMs,
      writesWithout,
      open: (place) => openSimulated({ network, process, findServer: findRedis }, place),
    };
  }
}
