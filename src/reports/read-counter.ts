// Counts the reads of this instance by prefix, until they are added to the reports.
import {
  type CountedReads,
  type NameCounts,
  MAX_REPORTED_NAMES,
  OTHER_PREFIXES,
} from '../coordination/report-store.js';
import { type HandleRef, handleRef } from '../handle/handle.js';
import type { PreparedHit } from '../observe/hits.js';
import { TopCounts } from '../observe/top-counts.js';

/** An answered read of one handle. */
interface CountedRead {
  handle: HandleRef;
  interface: PreparedHit['family'] | 'batch';
  exists: boolean;
  times?: number;
}

interface ReadCounterDeps {
  now: () => number;
  maxPrefixes: number;
  caseSensitive: boolean;
}

/** Maximum prepared hits with uncounted reads; each is kept in memory until it is counted. */
const MAX_UNCOUNTED = 8192;

/** Longer handles are cut in top lists (characters). */
const MAX_NAME_CHARS = 250;

export class ReadCounter {
  readonly #deps: ReadCounterDeps;
  /** Counts of the current month, by prefix. */
  #rows = new Map<string, CountingRow>();
  /** Counts of earlier months that are not taken yet. */
  #earlier: CountingRow[] = [];
  #month = '';
  /** End of the month (ms since the epoch). */
  #monthEnd = -Infinity;
  /** The prefixes of the month that have a row; they remain when counts are taken. */
  readonly #prefixes = new Set<string>();
  #uncounted: PreparedHit[] = [];

  constructor(deps: ReadCounterDeps) {
    this.#deps = deps;
  }

  count({ handle: { key, prefix }, interface: family, exists, times = 1 }: CountedRead): void {
    const row = this.#rowOf(prefix, exists);
    row.totals[family] = (row.totals[family] ?? 0) + times;
    if (!exists) row.totals['unknown'] = (row.totals['unknown'] ?? 0) + times;
    (exists ? row.handles : row.unknown).add(nameOf(key), times);
  }

  /** Counts a prepared hit at the next `countHits`, which costs a repeated hit an increment only. */
  addHit(hit: PreparedHit): void {
    if (hit.uncounted++ > 0) return;
    this.#uncounted.push(hit);
    if (this.#uncounted.length === MAX_UNCOUNTED) this.countHits();
  }

  /** Counts the added hits. Call it about once a second, because it releases their responses. */
  countHits(): void {
    for (const hit of this.#uncounted) {
      const handle = handleRef(hit.handle, this.#deps.caseSensitive);
      this.count({ handle, interface: hit.family, exists: hit.exists, times: hit.uncounted });
      hit.uncounted = 0;
    }
    this.#uncounted = [];
  }

  /** Counts a read that a traffic rule attributes to a robot, in addition to `count`. */
  countRobot({ prefix }: HandleRef): void {
    const { totals } = this.#rowOf(prefix, false);
    totals['robots'] = (totals['robots'] ?? 0) + 1;
  }

  /** Returns the counts since the last call. */
  take(): CountedReads[] {
    this.countHits();
    const rows = [...this.#earlier, ...this.#rows.values()];
    this.#earlier = [];
    this.#rows = new Map();
    return rows.map(({ handles, unknown, ...row }) => ({
      ...row,
      handles: toNameCounts(handles),
      unknown: toNameCounts(unknown),
    }));
  }

  #rowOf(prefix: string, exists: boolean): CountingRow {
    const now = this.#deps.now();
    if (now >= this.#monthEnd) this.#startMonth(new Date(now));
    const name = this.#admits(prefix, exists) ? prefix : OTHER_PREFIXES;
    let row = this.#rows.get(name);
    if (row === undefined) this.#rows.set(name, (row = newRow(this.#month, name)));
    return row;
  }

  /** Reserves half of the rows for prefixes with a handle, because names that do not exist can be invented. */
  #admits(prefix: string, exists: boolean): boolean {
    if (this.#prefixes.has(prefix)) return true;
    const isFull = this.#prefixes.size * (exists ? 1 : 2) >= this.#deps.maxPrefixes;
    if (!isFull) this.#prefixes.add(copyOf(prefix));
    return !isFull;
  }

  #startMonth(at: Date): void {
    this.#earlier.push(...this.#rows.values());
    this.#rows = new Map();
    this.#prefixes.clear();
    this.#month = at.toISOString().slice(0, 7);
    this.#monthEnd = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1);
  }
}

interface CountingRow extends Pick<CountedReads, 'month' | 'prefix' | 'totals'> {
  handles: TopCounts;
  unknown: TopCounts;
}

const newRow = (month: string, prefix: string): CountingRow => ({
  month,
  prefix,
  totals: {},
  handles: new TopCounts(MAX_REPORTED_NAMES / 2),
  unknown: new TopCounts(MAX_REPORTED_NAMES / 2),
});

const toNameCounts = ({ counts, floor }: TopCounts): NameCounts => ({ names: [...counts], maxError: floor });

const nameOf = (key: string): string =>
  copyOf(key.length > MAX_NAME_CHARS ? `${key.slice(0, MAX_NAME_CHARS)}…` : key);

/** Copies, because a substring would keep the whole request line in memory. */
const copyOf = (text: string): string => Buffer.from(text).toString();
