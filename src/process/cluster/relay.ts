// The primary's side: delivers messages to its workers and knows which have still to apply them.
import { LockQueue, type Place } from '../../coordination/lock-queue.js';
import type { Message } from '../../cache/coherence/message.js';
import type { Down, PeerAnswer, Up } from './messages.js';

export interface RelayWorker {
  id: number;
  send: (message: Down) => void;
}

/** A message that some workers have still to apply. */
interface Delivery {
  id: number;
  left: Set<number>;
  onApplied: () => void;
}

/** A question for the worker `owner`, from another that waits for what it says. */
interface Asking {
  from: number;
  id: number;
  owner: number;
}

/** A worker's place in the queue for a key. */
interface WorkerPlace extends Place {
  worker: number;
  id: number;
}

/**
 * Workers by their id. Exited workers need not apply anything. Nor is a worker waited for whose lease is over: it applies
 * what it was sent before it trusts its cache again.
 */
export class Relay {
  readonly #workers = new Map<number, RelayWorker>();
  readonly #deliveries = new Map<number, Delivery>();
  readonly #askings = new Map<string, Asking>();
  readonly #turns = new LockQueue<WorkerPlace>();
  readonly #isOver: (id: number) => boolean;
  #last = 0;

  /** `isOver`: whether the lease of a worker is over. */
  constructor(isOver: (id: number) => boolean = () => false) {
    this.#isOver = isOver;
  }

  has(id: number): boolean {
    return this.#workers.has(id);
  }

  join(worker: RelayWorker): void {
    this.#workers.set(worker.id, worker);
    this.#sendMembers();
  }

  leave(id: number): void {
    this.#workers.delete(id);
    this.#turns.leaveAll(({ worker }) => worker === id);
    this.#passOver(id);
    this.#sendMembers();
  }

  /** Nobody waits any longer for workers whose lease is over. */
  passOverLate(): void {
    for (const id of this.#workers.keys()) if (this.#isOver(id)) this.#passOver(id);
  }

  #passOver(id: number): void {
    for (const delivery of [...this.#deliveries.values()]) this.#applied(delivery, id);
    for (const asking of [...this.#askings.values()]) if (asking.owner === id) this.#answer(asking, {});
  }

  /** Settles when every worker with a lease has applied it. */
  deliver(message: Message, from?: number): Promise<void> {
    // The worker has stored what it replaces.
    const except = message.kind === 'replaced' ? from : undefined;
    return this.#send((id) => ({ kind: 'apply', id, message }), except);
  }

  #send(make: (id: number) => Down, except?: number): Promise<void> {
    const id = ++this.#last;
    const receivers = [...this.#workers.values()].filter((worker) => worker.id !== except);
    const left = new Set(receivers.map((worker) => worker.id).filter((worker) => !this.#isOver(worker)));
    return new Promise((resolve) => {
      const delivery = { id, left, onApplied: resolve };
      this.#deliveries.set(id, delivery);
      for (const worker of receivers) worker.send(make(id));
      this.#applied(delivery);
    });
  }

  /** Handles what concerns other workers. */
  pass(from: number, message: Up): void {
    switch (message.kind) {
      case 'tell':
        void this.#send((id) => ({ kind: 'told', id, line: message.line }), from).then(() => {
          this.#workers.get(from)?.send({ kind: 'done', id: message.id });
        });
        break;
      case 'applied': {
        const delivery = this.#deliveries.get(message.id);
        if (delivery) this.#applied(delivery, from);
        break;
      }
      case 'ask':
        this.#ask(from, message);
        break;
      case 'turn':
      case 'turn-over':
        this.#turn(from, message);
        break;
      case 'answer':
        this.#answered(from, message);
        break;
      default:
    }
  }

  #applied(delivery: Delivery, worker?: number): void {
    if (worker !== undefined) delivery.left.delete(worker);
    if (delivery.left.size > 0) return;
    this.#deliveries.delete(delivery.id);
    delivery.onApplied();
  }

  #turn(worker: number, message: Extract<Up, { kind: 'turn' | 'turn-over' }>): void {
    const { key, id } = message;
    const send = (down: Down): void => this.#workers.get(worker)?.send(down);
    if (message.kind === 'turn-over') {
      this.#turns.leave(key, (place) => place.worker === worker && place.id === id);
      return;
    }
    const grant = (freeMs: number): void => {
      send({ kind: 'your-turn', id, freeMs });
    };
    const { holder } = message;
    if (!this.#turns.enter(key, { worker, id, holder, grant })) send({ kind: 'no-turn', id });
  }

  #ask(
    from: number,
    { id, owner, key, handle }: { id: number; owner: number; key: string; handle: string },
  ): void {
    const asking = { from, id, owner };
    this.#askings.set(nameOf(asking), asking);
    const worker = this.#workers.get(owner);
    if (worker === undefined || this.#isOver(owner)) this.#answer(asking, {});
    else worker.send({ kind: 'asked', id, from, key, handle });
  }

  #answered(owner: number, message: Extract<Up, { kind: 'answer' }>): void {
    const asking = this.#askings.get(nameOf(message));
    if (asking?.owner === owner) this.#answer(asking, message.answer);
  }

  #answer(asking: Asking, answer: PeerAnswer): void {
    this.#askings.delete(nameOf(asking));
    this.#workers.get(asking.from)?.send({ kind: 'answered', id: asking.id, answer });
  }

  #sendMembers(): void {
    const ids = [...this.#workers.keys()].sort((one, other) => one - other);
    for (const worker of this.#workers.values()) worker.send({ kind: 'members', ids });
  }
}

const nameOf = ({ from, id }: Pick<Asking, 'from' | 'id'>): string => `${from} ${id}`;
