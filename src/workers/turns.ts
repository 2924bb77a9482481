// Whose turn it is to change a handle, among the workers of a machine.

export interface Turn {
  worker: number;
  id: number;
}

/** A queue for each key. The turn of a worker that is gone is over. */
export class Turns {
  readonly #queues = new Map<string, Turn[]>();
  readonly #grant: (turn: Turn) => void;

  constructor(grant: (turn: Turn) => void) {
    this.#grant = grant;
  }

  ask(key: string, turn: Turn): void {
    const queue = this.#queues.get(key) ?? [];
    this.#queues.set(key, queue);
    queue.push(turn);
    if (queue.length === 1) this.#grant(turn);
  }

  /** Ends a turn, or takes it back while it waits. */
  end(key: string, { worker, id }: Turn): void {
    this.#remove(key, (turn) => turn.worker === worker && turn.id === id);
  }

  endAllOf(worker: number): void {
    for (const key of [...this.#queues.keys()]) this.#remove(key, (turn) => turn.worker === worker);
  }

  #remove(key: string, isOver: (turn: Turn) => boolean): void {
    const queue = this.#queues.get(key) ?? [];
    const [first] = queue;
    const left = queue.filter((turn) => !isOver(turn));
    const [next] = left;
    if (next === undefined) this.#queues.delete(key);
    else this.#queues.set(key, left);
    if (next !== undefined && next !== first) this.#grant(next);
  }
}
