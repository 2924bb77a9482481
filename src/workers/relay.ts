// The primary's side: passes messages on between workers and knows who has still to answer.
import { LockQueue, type Place } from '../cache/lock-queue.js';
import type { Down, PeerAnswer, Up } from './messages.js';

export interface RelayWorker {
  id: number;
  send: (message: Down) => void;
}

interface Telling {
  origin: number;
  id: number;
  left: Set<number>;
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
 * Workers by their id. A worker that is gone has obeyed: it serves nobody. Nor is a silent one waited for: what
 * it is told it hears before it answers anybody again, as it reads in the order in which things came.
 */
export class Relay {
  readonly #workers = new Map<number, RelayWorker>();
  readonly #tellings = new Set<Telling>();
  readonly #askings = new Map<string, Asking>();
  readonly #turns = new LockQueue<WorkerPlace>();
  readonly #isSilent: (id: number) => boolean;

  constructor(isSilent: (id: number) => boolean = () => false) {
    this.#isSilent = isSilent;
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

  /** Nobody waits any longer for those that have become silent. */
  passOverSilent(): void {
    for (const id of this.#workers.keys()) if (this.#isSilent(id)) this.#passOver(id);
  }

  #passOver(id: number): void {
    for (const telling of [...this.#tellings]) this.#heard(telling, id);
    for (const asking of [...this.#askings.values()]) if (asking.owner === id) this.#answer(asking, {});
  }

  /** Handles what concerns other workers; tells whether it did. */
  pass(from: number, message: Up): boolean {
    switch (message.kind) {
      case 'tell':
        this.#tell(from, message);
        return true;
      case 'heard':
        this.#obeyed(from, message);
        return true;
      case 'ask':
        this.#ask(from, message);
        return true;
      case 'turn':
      case 'turn-over':
        this.#turn(from, message);
        return true;
      case 'answer':
        this.#answered(from, message);
        return true;
      default:
        return false;
    }
  }

  #tell(origin: number, { id, line }: { id: number; line: string }): void {
    const others = [...this.#workers.values()].filter((worker) => worker.id !== origin);
    const awaited = others.filter((worker) => !this.#isSilent(worker.id));
    const telling = { origin, id, left: new Set(awaited.map((worker) => worker.id)) };
    this.#tellings.add(telling);
    for (const worker of others) worker.send({ kind: 'told', id, from: origin, line });
    this.#heard(telling, origin);
  }

  #obeyed(worker: number, { from: origin, id }: { from: number; id: number }): void {
    for (const telling of [...this.#tellings]) {
      if (telling.origin === origin && telling.id === id) this.#heard(telling, worker);
    }
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

  #heard(telling: Telling, worker: number): void {
    telling.left.delete(worker);
    if (telling.left.size > 0) return;
    this.#tellings.delete(telling);
    this.#workers.get(telling.origin)?.send({ kind: 'done', id: telling.id });
  }

  #ask(
    from: number,
    { id, owner, key, handle }: { id: number; owner: number; key: string; handle: string },
  ): void {
    const asking = { from, id, owner };
    this.#askings.set(nameOf(asking), asking);
    const worker = this.#workers.get(owner);
    if (worker === undefined || this.#isSilent(owner)) this.#answer(asking, {});
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
