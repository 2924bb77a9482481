// The events of a simulation in time order, as a binary heap.

export interface Event {
  /** Virtual time in ms. */
  at: number;
  /** Random order of simultaneous events, drawn from the seed. */
  tie: number;
  /** Sequence number, which orders events with equal ties. */
  number: number;
  label: string;
  /** Whether the event may leave promise jobs that must complete before the next event. */
  drains: boolean;
  run: () => void;
}

export class EventQueue {
  readonly #heap: Event[] = [];

  get size(): number {
    return this.#heap.length;
  }

  get first(): Event | undefined {
    return this.#heap[0];
  }

  add(event: Event): void {
    const heap = this.#heap;
    let place = heap.length;
    heap.push(event);
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (!isBefore(event, heap[above]!)) break;
      heap[place] = heap[above]!;
      place = above;
    }
    heap[place] = event;
  }

  take(): Event | undefined {
    const first = this.#heap[0];
    const last = this.#heap.pop();
    if (last !== undefined && this.#heap.length > 0) this.#sink(last);
    return first;
  }

  #sink(event: Event): void {
    const heap = this.#heap;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= heap.length) break;
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++;
      if (!isBefore(heap[below]!, event)) break;
      heap[place] = heap[below]!;
      place = below;
    }
    heap[place] = event;
  }
}

function isBefore(a: Event, b: Event): boolean {
  if (a.at !== b.at) return a.at < b.at;
  return a.tie === b.tie ? a.number < b.number : a.tie < b.tie;
}
