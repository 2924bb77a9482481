// Messages between workers by way of the primary: deliveries with acknowledgements, loads by the owner of a key, locks.
import type { Worker } from 'node:cluster';
import { LockQueue, type QueueEntry } from '../../coordination/lock-queue.js';
import type { Message } from '../../cache/coherence/message.js';
import { type PeerMessage, type PeerAnswer, type WorkerMessage, wrap } from './messages.js';

export interface RelayWorker {
  id: number;
  send: (message: PeerMessage) => void;
}

export const toRelay = (worker: Worker): RelayWorker => ({
  id: worker.id,
  send: (message) => {
    if (worker.isConnected()) worker.send(wrap(message));
  },
});

/** A message that some workers have not acknowledged. */
interface Delivery {
  id: number;
  waitingFor: Set<number>;
  onAcknowledged: () => void;
}

/** A load that the worker `from` waits for. */
interface PendingLoad {
  from: number;
  id: number;
  owner: number;
}

/** A worker's entry in the queue for the lock of a key. */
interface WorkerEntry extends QueueEntry {
  worker: number;
  id: number;
}

/**
 * Exited workers need no acknowledgement. Nor do workers with an expired lease: they apply what they were sent before they
 * answer from their cache again.
 */
export class Relay {
  readonly #workers = new Map<number, RelayWorker>();
  readonly #deliveries = new Map<number, Delivery>();
  readonly #loads = new Map<string, PendingLoad>();
  readonly #locks = new LockQueue<WorkerEntry>();
  readonly #isExpired: (id: number) => boolean;
  #lastId = 0;

  /** `isExpired`: whether the lease of a worker has expired. */
  constructor(isExpired: (id: number) => boolean = () => false) {
    this.#isExpired = isExpired;
  }

  has(id: number): boolean {
    return this.#workers.has(id);
  }

  join(worker: RelayWorker): void {
    this.#workers.set(worker.id, worker);
    this.#sendWorkerIds();
  }

  leave(id: number): void {
    this.#workers.delete(id);
    this.#locks.leaveAll(({ worker }) => worker === id);
    this.#release(id);
    this.#sendWorkerIds();
  }

  /** Stops waiting for workers whose lease has expired. */
  releaseExpired(): void {
    for (const id of this.#workers.keys()) if (this.#isExpired(id)) this.#release(id);
  }

  #release(id: number): void {
    for (const delivery of [...this.#deliveries.values()]) this.#acknowledge(delivery, id);
    for (const load of [...this.#loads.values()]) if (load.owner === id) this.#answer(load, {});
  }

  /** Settles when every worker with a valid lease has applied the message. */
  deliver(message: Message, from?: number): Promise<void> {
    // The publishing worker has stored the new entry.
    const except = message.kind === 'replaced' ? from : undefined;
    return this.#send((id) => ({ kind: 'apply', id, message }), except);
  }

  #send(make: (id: number) => PeerMessage, except?: number): Promise<void> {
    const id = ++this.#lastId;
    const receivers = [...this.#workers.values()].filter((worker) => worker.id !== except);
    const waitingFor = new Set(
      receivers.map((worker) => worker.id).filter((worker) => !this.#isExpired(worker)),
    );
    return new Promise((resolve) => {
      const delivery = { id, waitingFor, onAcknowledged: resolve };
      this.#deliveries.set(id, delivery);
      for (const worker of receivers) worker.send(make(id));
      this.#acknowledge(delivery);
    });
  }

  /** Handles a message that concerns other workers. */
  receive(from: number, message: WorkerMessage): void {
    switch (message.kind) {
      case 'coordination':
        void this.#send((id) => ({ kind: 'coordination', id, line: message.line }), from).then(() => {
          this.#workers.get(from)?.send({ kind: 'delivered', id: message.id });
        });
        break;
      case 'applied': {
        const delivery = this.#deliveries.get(message.id);
        if (delivery) this.#acknowledge(delivery, from);
        break;
      }
      case 'load':
        this.#startLoad(from, message);
        break;
      case 'acquire-lock':
      case 'release-lock':
        this.#lock(from, message);
        break;
      case 'loaded':
        this.#finishLoad(from, message);
        break;
      case 'packet':
        this.#workers.get(message.owner)?.send({ kind: 'packet', packet: message.packet });
        break;
      default:
    }
  }

  #acknowledge(delivery: Delivery, worker?: number): void {
    if (worker !== undefined) delivery.waitingFor.delete(worker);
    if (delivery.waitingFor.size > 0) return;
    this.#deliveries.delete(delivery.id);
    delivery.onAcknowledged();
  }

  #lock(worker: number, message: Extract<WorkerMessage, { kind: 'acquire-lock' | 'release-lock' }>): void {
    const { key, id } = message;
    const send = (down: PeerMessage): void => this.#workers.get(worker)?.send(down);
    if (message.kind === 'release-lock') {
      this.#locks.leave(key, (entry) => entry.worker === worker && entry.id === id);
      return;
    }
    const grant = (freeMs: number): void => {
      send({ kind: 'lock-granted', id, freeMs });
    };
    const { client } = message;
    if (!this.#locks.enter(key, { worker, id, client, grant })) send({ kind: 'lock-refused', id });
  }

  #startLoad(
    from: number,
    { id, owner, key, handle, caller }: Extract<WorkerMessage, { kind: 'load' }>,
  ): void {
    const load = { from, id, owner };
    this.#loads.set(nameOf(load), load);
    const worker = this.#workers.get(owner);
    if (worker === undefined || this.#isExpired(owner)) this.#answer(load, {});
    else worker.send({ kind: 'load', id, from, key, handle, ...(caller && { caller }) });
  }

  #finishLoad(owner: number, message: Extract<WorkerMessage, { kind: 'loaded' }>): void {
    const load = this.#loads.get(nameOf(message));
    if (load?.owner === owner) this.#answer(load, message.answer);
  }

  #answer(load: PendingLoad, answer: PeerAnswer): void {
    this.#loads.delete(nameOf(load));
    this.#workers.get(load.from)?.send({ kind: 'loaded', id: load.id, answer });
  }

  #sendWorkerIds(): void {
    const ids = [...this.#workers.keys()].sort((one, other) => one - other);
    for (const worker of this.#workers.values()) worker.send({ kind: 'workers', ids });
  }
}

const nameOf = ({ from, id }: Pick<PendingLoad, 'from' | 'id'>): string => `${from} ${id}`;
