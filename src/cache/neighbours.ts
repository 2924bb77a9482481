// The other instances on the same Redis, as far as they give signs of life.
import { PROOF_LIFE_MS } from './trust.js';

/** No two clocks run at the same speed; a neighbour is counted for longer than it counts itself. */
const COUNTED_MS = 1.1 * PROOF_LIFE_MS;

export class Neighbours {
  readonly #steadyNow: () => number;
  /** Until when each may trust what it keeps in memory. */
  readonly #untils = new Map<string, number>();

  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow;
  }

  gaveSign(instance: string): void {
    this.#endOld();
    this.#untils.set(instance, this.#steadyNow() + COUNTED_MS);
  }

  left(instance: string): void {
    this.#untils.delete(instance);
  }

  /** Those that may trust what they keep in memory, and until when if they give no other sign. */
  alive(): Map<string, number> {
    this.#endOld();
    return new Map(this.#untils);
  }

  #endOld(): void {
    const now = this.#steadyNow();
    for (const [instance, until] of this.#untils) if (until < now) this.#untils.delete(instance);
  }
}
