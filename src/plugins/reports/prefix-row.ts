// The counts of one prefix in bounded memory.
import { type NameCounts, type PrefixCounts, MAX_REPORTED_NAMES } from './redis-store.js';
import { TopCounts } from '../../observe/top-counts.js';

/** Maximum length of a handle in a top list (characters); longer handles are cut. */
const MAX_NAME_CHARS = 250;

export class PrefixRow {
  readonly #totals: Record<string, number> = {};
  readonly #handles = new TopCounts(MAX_REPORTED_NAMES / 2);
  readonly #unknown = new TopCounts(MAX_REPORTED_NAMES / 2);

  addTotal(field: string, count: number): void {
    this.#totals[field] = (this.#totals[field] ?? 0) + count;
  }

  /** `key`: cache key of a handle; a long one is cut. */
  addName(key: string, exists: boolean, count: number): void {
    const top = exists ? this.#handles : this.#unknown;
    const name = key.length > MAX_NAME_CHARS ? `${key.slice(0, MAX_NAME_CHARS)}…` : key;
    // Copies a new name, because a substring would keep the whole request line in memory.
    top.add(top.counts.has(name) ? name : Buffer.from(name).toString(), count);
  }

  addCounts({ totals, handles, unknown }: PrefixCounts): void {
    for (const [field, count] of Object.entries(totals)) this.addTotal(field, count);
    addNames(this.#handles, handles);
    addNames(this.#unknown, unknown);
  }

  counts(): PrefixCounts {
    return { totals: this.#totals, handles: namesOf(this.#handles), unknown: namesOf(this.#unknown) };
  }
}

function addNames(top: TopCounts, { names, maxError }: NameCounts): void {
  for (const [name, count] of names) top.add(name, count);
  top.floor += maxError;
}

const namesOf = ({ counts, floor }: TopCounts): NameCounts => ({ names: [...counts], maxError: floor });
