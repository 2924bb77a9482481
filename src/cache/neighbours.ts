// The other instances on the same Redis, as far as they give signs of life.
import { PROOF_LIFE_MS } from './trust.js';

/** No two clocks run at the same speed; a neighbour is counted for longer than it counts itself. */
const COUNTED_MS = 1.1 * PROOF_LIFE_MS;

export class Neighbours {
  readonly #steadyNow: () => number;
  readonly #heardAt = new Map<string, number>();

  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow;
  }

  gaveSign(instance: string): void {
    this.#heardAt.set(instance, this.#steadyNow());
  }

  left(instance: string): void {
    this.#heardAt.delete(instance);
  }

  /** Those that may trust what they keep in memory. */
  alive(): string[] {
    const oldest = this.#steadyNow() - COUNTED_MS;
    for (const [instance, heardAt] of this.#heardAt) {
      if (heardAt < oldest) this.#heardAt.delete(instance);
    }
    return [...this.#heardAt.keys()];
  }
}
