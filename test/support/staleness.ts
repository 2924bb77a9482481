// Records writes and reads, and computes for how long reads after an acknowledgement returned older records.

interface Read {
  handle: string;
  startedAt: number;
  shown: number;
}

/** A history of numbered records: each write of a handle has the next number. */
export class History {
  readonly #acknowledgedAt = new Map<string, number[]>();
  readonly #reads: Read[] = [];

  /** Records the acknowledgement of a write. */
  acknowledged(handle: string, count: number): void {
    const times = this.#acknowledgedAt.get(handle) ?? [];
    times[count] = performance.now();
    this.#acknowledgedAt.set(handle, times);
  }

  /** Records the number that a read returns. */
  async read(handle: string, ask: () => Promise<number>): Promise<number> {
    const startedAt = performance.now();
    const shown = await ask();
    this.#reads.push({ handle, startedAt, shown });
    return shown;
  }

  get reads(): number {
    return this.#reads.length;
  }

  /**
   * Returns, for each acknowledged write, the delay (ms) until the start of the last read that returned an
   * older record.
   */
  delays(): number[] {
    const delays = new Map<string, number>();
    for (const [handle, times] of this.#acknowledgedAt) {
      times.forEach((_time, count) => delays.set(`${handle} ${count}`, 0));
    }
    for (const { handle, startedAt, shown } of this.#reads) {
      const missed = (this.#acknowledgedAt.get(handle) ?? []).findIndex(
        (time: number | undefined, count) => count > shown && time !== undefined,
      );
      if (missed === -1) continue;
      const delay = startedAt - (this.#acknowledgedAt.get(handle)?.[missed] ?? 0);
      const name = `${handle} ${missed}`;
      delays.set(name, Math.max(delay, delays.get(name) ?? 0));
    }
    return [...delays.values()];
  }
}

/** Returns the value at a quantile between 0 and 1. */
export function percentile(values: number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** Prints a row of a Markdown table. */
export function report(name: string, values: number[]): void {
  const ms = [0.5, 0.99, 1].map((part) => `${percentile(values, part).toFixed(1)} ms`);
  process.stdout.write(`| ${name} | ${values.length} | ${ms.join(' | ')} |\n`);
}
