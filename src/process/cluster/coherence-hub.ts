// Cache coherence of this machine, in the primary: the hub of all workers, and their leases.
import { readFileSync } from 'node:fs';
import { type Clock, systemClock } from '../../cache/clock.js';
import { LEASE_MS } from '../../cache/coherence/lease.js';
import { type Instance, type RedisOptions, createInstance } from '../../cache/instance.js';
import type { Config } from '../../config/schema.js';
import { ServiceError } from '../../errors.js';
import type { Logger } from '../../observe/logger.js';
import { redisOptions } from '../../compose/cache.js';
import { packFailure } from './upstream-failure.js';
import type { Up } from './messages.js';
import { Relay, type RelayWorker } from './relay.js';
import { WorkerLeases } from './worker-leases.js';

/** How often it is looked for workers whose lease is over. */
const LOOK_EVERY_MS = 250;

export class CoherenceHub {
  readonly #clock: Clock;
  readonly #leases: WorkerLeases;
  readonly #relay: Relay;
  readonly #instance: Instance;
  #cancelLook: () => void = () => undefined;

  constructor(redis: RedisOptions | undefined, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#leases = new WorkerLeases(clock);
    this.#relay = new Relay(this.#leases.isOver);
    this.#instance = createInstance({
      redis,
      clock,
      now: clock.now,
      deliver: (message, from) => this.#relay.deliver(message, from),
      onState: () => undefined,
    });
    this.#scheduleLook();
  }

  /** From now on the worker is sent every message, and may have a lease. */
  async join(worker: RelayWorker): Promise<void> {
    this.#relay.join(worker);
    const message = await this.#instance.readBans();
    if (message) worker.send({ kind: 'apply', id: 0, message });
  }

  leave(id: number): void {
    this.#leases.left(id);
    this.#relay.leave(id);
  }

  receive(worker: RelayWorker, message: Up): void {
    if (message.kind === 'renew') this.#renewLease(worker, message);
    else if (message.kind === 'publish') void this.#publish(worker, message);
    else this.#relay.pass(worker.id, message);
  }

  close(): Promise<void> {
    this.#cancelLook();
    return this.#instance.close();
  }

  #scheduleLook(): void {
    this.#cancelLook = this.#clock.after(LOOK_EVERY_MS, () => {
      this.#scheduleLook();
      this.#relay.passOverLate();
    });
  }

  #renewLease(worker: RelayWorker, { asked }: Extract<Up, { kind: 'renew' }>): void {
    if (!this.#relay.has(worker.id)) return;
    this.#leases.renewed(worker.id);
    worker.send({ kind: 'lease', asked, linkedMs: this.#instance.leaseLeftMs() ?? LEASE_MS });
  }

  async #publish(worker: RelayWorker, { id, change }: Extract<Up, { kind: 'publish' }>): Promise<void> {
    try {
      await this.#instance.hub.publish(change, worker.id);
      worker.send({ kind: 'done', id });
    } catch (error) {
      const failure = error instanceof ServiceError ? error : new ServiceError('INTERNAL', { cause: error });
      worker.send({ kind: 'done', id, failure: packFailure(failure) });
    }
  }
}

export function makeRedisOptions(config: Config, logger: Logger): RedisOptions | undefined {
  const { caFile } = config.redis;
  const redisCa = caFile === null ? {} : { redisCa: readFileSync(caFile, 'utf8') };
  return redisOptions({ config, upstreamUrl: config.upstream.url ?? '', logger, ...redisCa });
}
