// What the workers say of themselves, as the readiness of the machine.

/** A worker says it again and again; one that is silent for so long is too busy to say it. */
const SILENT_MS = 5000;

/** Ready as long as one worker is: those that are late get less anyway, as each takes connections by itself. */
export class States {
  readonly #states = new Map<number, { isReady: boolean; at: number }>();

  told(worker: number, isReady: boolean, now: number): void {
    this.#states.set(worker, { isReady, at: now });
  }

  left(worker: number): void {
    this.#states.delete(worker);
  }

  isOneReady(now: number): boolean {
    return [...this.#states.values()].some(({ isReady, at }) => isReady && now - at < SILENT_MS);
  }
}
