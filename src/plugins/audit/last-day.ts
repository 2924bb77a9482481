// Counts events by name over the last 24 hours, in a ring buffer of hours.

const HOURS = 24;
const HOUR_MS = 3_600_000;

interface Hour<Name> {
  /** Hours since the epoch. */
  number: number;
  counts: Map<Name, number>;
}

/** Counts events in the current hour and the previous 23 hours. */
export class LastDay<Name extends string> {
  readonly #now: () => number;
  readonly #ring: Hour<Name>[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  add(name: Name): void {
    const { counts } = this.#currentHour();
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }

  count(name: Name): number {
    const since = this.#hourNumber() - HOURS;
    return this.#ring.reduce(
      (sum, { number, counts }) => sum + (number > since ? (counts.get(name) ?? 0) : 0),
      0,
    );
  }

  #currentHour(): Hour<Name> {
    const number = this.#hourNumber();
    const known = this.#ring[number % HOURS];
    if (known?.number === number) return known;
    return (this.#ring[number % HOURS] = { number, counts: new Map() });
  }

  #hourNumber(): number {
    return Math.floor(this.#now() / HOUR_MS);
  }
}
