// Counts the reads of this instance by prefix, until they are added to the reports.
import { OTHER_PREFIXES } from './redis-store.js';
import { type HandleRef, handleRef } from '../../handle/handle.js';
import type { AnsweredRead } from '../../hooks.js';
import type { PreparedHit } from '../../observe/hits.js';
import { PrefixRow } from './prefix-row.js';

/** A row that no longer changes. */
export interface TakenRow {
  /** Month in UTC, such as `2026-11`. */
  month: string;
  prefix: string;
  row: PrefixRow;
}

interface CountedRead extends AnsweredRead {
  times?: number;
}

/**
 * Maximum number of prepared responses with repeats hits; each stays in memory until its hits are counted.
 */
const MAX_UNCOUNTED = 16_384;

export class ReadCounter {
  readonly #now: () => number;
  readonly #maxPrefixes: number;
  readonly #caseSensitive: boolean;
  /** Counts of the current month, by prefix. */
  #rows = new Map<string, PrefixRow>();
  /** Counts that are complete, but not taken yet. */
  #earlier: TakenRow[] = [];
  #month = '';
  /** End of the month (ms since the epoch). */
  #monthEnd = -Infinity;
  /** The prefixes of the month that have a row; they remain when counts are taken. */
  readonly #prefixes = new Set<string>();
  #repeatedHits: PreparedHit[] = [];

  constructor(now: () => number, maxPrefixes: number, caseSensitive: boolean) {
    this.#now = now;
    this.#maxPrefixes = maxPrefixes;
    this.#caseSensitive = caseSensitive;
  }

  count({ handle: { key, prefix }, interface: family, exists, times = 1 }: CountedRead): void {
    const row = this.#rowOf(prefix, exists);
    row.addTotal(family, times);
    if (!exists) row.addTotal('unknown', times);
    row.addName(key, exists, times);
  }

  /** Adds a prepared hit, which the next `countHits` counts. A repeated hit costs only an increment. */
  addHit(hit: PreparedHit): void {
    if (hit.repeats++ > 0) return;
    this.#repeatedHits.push(hit);
    if (this.#repeatedHits.length === MAX_UNCOUNTED) this.countHits();
  }

  /** Counts the added hits. Call it about once a second, because it releases their responses. */
  countHits(): void {
    for (const hit of this.#repeatedHits) {
      const handle = handleRef(hit.handle, this.#caseSensitive);
      this.count({ handle, interface: hit.family, exists: hit.exists, times: hit.repeats });
      hit.repeats = 0;
    }
    this.#repeatedHits = [];
  }

  /** Counts a read that a traffic rule attributes to a robot, in addition to `count`. */
  countRobot({ prefix }: HandleRef): void {
    this.#rowOf(prefix, false).addTotal('robots', 1);
  }

  /** Returns the counts since the last call. */
  take(): TakenRow[] {
    this.countHits();
    this.#endRows();
    return this.#earlier.splice(0);
  }

  #rowOf(given: string, exists: boolean): PrefixRow {
    const now = this.#now();
    if (now >= this.#monthEnd) this.#startMonth(new Date(now));
    const known = this.#rows.get(given);
    if (known !== undefined) return known;
    // Copies, because a substring would keep the whole request line in memory.
    const prefix = Buffer.from(given).toString();
    const name = this.#admits(prefix, exists) ? prefix : OTHER_PREFIXES;
    const row = this.#rows.get(name) ?? new PrefixRow();
    this.#rows.set(name, row);
    return row;
  }

  /**
   * Reserves half of the rows for prefixes of handles that exist, because names that do not exist can be
   * invented.
   */
  #admits(prefix: string, exists: boolean): boolean {
    if (this.#prefixes.has(prefix)) return true;
    const isFull = this.#prefixes.size * (exists ? 1 : 2) >= this.#maxPrefixes;
    if (!isFull) this.#prefixes.add(prefix);
    return !isFull;
  }

  #endRows(): void {
    for (const [prefix, row] of this.#rows) this.#earlier.push({ month: this.#month, prefix, row });
    this.#rows = new Map();
  }

  #startMonth(at: Date): void {
    this.#endRows();
    this.#prefixes.clear();
    this.#month = at.toISOString().slice(0, 7);
    this.#monthEnd = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1);
  }
}
