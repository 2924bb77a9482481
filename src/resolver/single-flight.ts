// One load per key: whoever asks while a load is on its way joins it.

/** What a load gives: at once what may stand in for it, later the answer. */
export interface Load<T, StandIn> {
  startedAt: number;
  standIn: Promise<StandIn>;
  answer: Promise<T>;
}

/**
 * Joins callers of the same key. A forgotten key lets its load go: those who joined before get what
 * they asked for before, and the next caller starts a load of its own.
 */
export class Flight<T, StandIn> {
  readonly #loads = new Map<string, Load<T, StandIn>>();

  /** `since`: a load that began before (ms) is not joined. */
  join(
    key: string,
    { start, since }: { start: () => Load<T, StandIn>; since: number },
  ): { load: Load<T, StandIn>; collapsed: boolean } {
    const running = this.#loads.get(key);
    if (running && running.startedAt >= since) return { load: running, collapsed: true };
    const load = start();
    this.#loads.set(key, load);
    const land = (): void => {
      if (this.#loads.get(key) === load) this.#loads.delete(key);
    };
    load.answer.then(land, land);
    return { load, collapsed: false };
  }

  forget(key: string): void {
    this.#loads.delete(key);
  }

  forgetWhere(isForgotten: (key: string) => boolean): void {
    for (const key of this.#loads.keys()) if (isForgotten(key)) this.#loads.delete(key);
  }
}
