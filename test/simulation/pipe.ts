// One direction of a connection: delivers in order after a delay, while the line and the receiver work.
import type { Line, Network } from './network.js';
import type { Process } from './process.js';

export interface PipeOptions<T> {
  network: Network;
  line: Line;
  receiver: Process;
  label: string;
  extraMs: () => number;
  deliver: (item: T) => void;
}

export class Pipe<T> {
  readonly #options: PipeOptions<T>;
  readonly #queue: { item: T; dueAt: number }[] = [];
  #lastDueAt = 0;
  #isWaiting = false;
  #isClosed = false;

  constructor(options: PipeOptions<T>) {
    this.#options = options;
  }

  send(item: T): void {
    if (this.#isClosed) return;
    const { network, receiver, extraMs } = this.#options;
    this.#lastDueAt = Math.max(this.#lastDueAt, receiver.virtualMs + network.delayMs() + extraMs());
    this.#queue.push({ item, dueAt: this.#lastDueAt });
    this.#wait();
  }

  /** Drops all data in flight. */
  empty(): void {
    this.#queue.splice(0);
  }

  close(): void {
    this.#isClosed = true;
    this.empty();
  }

  #wait(): void {
    const [next] = this.#queue;
    if (next === undefined || this.#isWaiting) return;
    const { receiver, label } = this.#options;
    this.#isWaiting = true;
    receiver.post(next.dueAt - receiver.virtualMs, label, () => {
      this.#arrive();
    });
  }

  #arrive(): void {
    const { line } = this.#options;
    if (line.isCut) {
      line.whenMended(() => {
        this.#isWaiting = false;
        this.#wait();
      });
      return;
    }
    this.#isWaiting = false;
    this.#deliverDue();
    this.#wait();
  }

  #deliverDue(): void {
    const { network, receiver, deliver } = this.#options;
    do {
      const [next] = this.#queue;
      if (next === undefined || next.dueAt > receiver.virtualMs) return;
      this.#queue.shift();
      deliver(next.item);
    } while (network.readsOn());
  }
}
