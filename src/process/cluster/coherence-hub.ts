// Cache coherence of this machine, in the primary: the hub of all workers, and their leases.
import { type Clock, systemClock } from '../../cache/clock.js';
import { LEASE_MS, LEASE_WAIT_MS } from '../../cache/coherence/lease.js';
import { type Instance, type RedisOptions, createInstance } from '../../cache/instance.js';
import { ServiceError } from '../../errors.js';
import { type WorkerMessage, packFailure } from './messages.js';
import { Relay, type RelayWorker } from './relay.js';

/** How often expired leases are looked for. */
const EXPIRY_CHECK_MS = 250;

export class CoherenceHub {
  readonly #clock: Clock;
  readonly #leases: WorkerLeases;
  readonly #relay: Relay;
  readonly #instance: Instance;
  #cancelExpiryCheck: () => void = () => undefined;

  constructor(redis: RedisOptions | undefined, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#leases = new WorkerLeases(clock);
    this.#relay = new Relay(this.#leases.isExpired);
    this.#instance = createInstance({
      redis,
      clock,
      now: clock.now,
      deliver: (message, from) => this.#relay.deliver(message, from),
      onState: () => undefined,
    });
    this.#scheduleExpiryCheck();
  }

  /** From now on the worker receives every message and may have a lease. */
  async join(worker: RelayWorker): Promise<void> {
    this.#relay.join(worker);
    const message = await this.#instance.readBans();
    if (message) worker.send({ kind: 'apply', id: 0, message });
  }

  leave(id: number): void {
    this.#leases.remove(id);
    this.#relay.leave(id);
  }

  receive(worker: RelayWorker, message: WorkerMessage): void {
    if (message.kind === 'renew-lease') this.#renewLease(worker, message);
    else if (message.kind === 'publish') void this.#publish(worker, message);
    else this.#relay.receive(worker.id, message);
  }

  close(): Promise<void> {
    this.#cancelExpiryCheck();
    return this.#instance.close();
  }

  #scheduleExpiryCheck(): void {
    this.#cancelExpiryCheck = this.#clock.after(EXPIRY_CHECK_MS, () => {
      this.#scheduleExpiryCheck();
      this.#relay.releaseExpired();
    });
  }

  #renewLease(worker: RelayWorker, { requestedAt }: Extract<WorkerMessage, { kind: 'renew-lease' }>): void {
    if (!this.#relay.has(worker.id)) return;
    this.#leases.renew(worker.id);
    worker.send({ kind: 'lease', requestedAt, instanceLeaseMs: this.#instance.leaseLeftMs() ?? LEASE_MS });
  }

  async #publish(
    worker: RelayWorker,
    { id, change }: Extract<WorkerMessage, { kind: 'publish' }>,
  ): Promise<void> {
    try {
      await this.#instance.hub.publish(change, worker.id);
      worker.send({ kind: 'delivered', id });
    } catch (error) {
      const failure = error instanceof ServiceError ? error : new ServiceError('INTERNAL', { cause: error });
      worker.send({ kind: 'delivered', id, failure: packFailure(failure) });
    }
  }
}

/** Until when each worker may answer from its cache, as the primary knows it. */
export class WorkerLeases {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #endsAt = new Map<number, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The worker's own lease runs from the moment of its request: it ends earlier than this. */
  renew(worker: number): void {
    this.#endsAt.set(worker, this.#clock.monotonic() + LEASE_WAIT_MS);
  }

  remove(worker: number): void {
    this.#endsAt.delete(worker);
  }

  readonly isExpired = (worker: number): boolean =>
    (this.#endsAt.get(worker) ?? -Infinity) <= this.#clock.monotonic();
}
