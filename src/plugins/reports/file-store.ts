// Resolution reports of a single instance without Redis: in memory, and in a file for each month.
import { createWriteStream } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from '../../context.js';
import { type CountedReads, type PrefixCounts, type ReportStore, OTHER_PREFIXES } from './redis-store.js';
import { readFileLines } from '../../handle/streams.js';
import type { ReportsConfig } from './plugin.js';
import { PrefixRow } from './prefix-row.js';

/** Months before the current one whose files are kept, as in Redis. */
const MONTHS_KEPT = 14;
/** Matches the file of a month, also if it was damaged. */
const MONTH_FILE = /^reports-(\d{4}-\d{2})\.ndjson/;

type RowsByPrefix = Map<string, PrefixRow>;

/** Holds the counts of one month, normally the current month, in memory. */
export class FileReportStore implements ReportStore {
  readonly #settings: ReportsConfig['reports'];
  readonly #log: Context['log'];
  #month = '';
  #rows: RowsByPrefix = new Map();

  /** Without a folder, the reports end with the process. */
  constructor(settings: ReportsConfig['reports'], { log }: Context) {
    this.#settings = settings;
    this.#log = log;
  }

  async add({ month, prefix, ...counts }: CountedReads): Promise<boolean> {
    if (month !== this.#month) {
      await this.save();
      this.#rows = await this.#load(month);
      this.#month = month;
      await this.#deleteOld(month);
    }
    const isFull = !this.#rows.has(prefix) && this.#rows.size >= this.#settings.maxPrefixes;
    addTo(this.#rows, isFull ? OTHER_PREFIXES : prefix, counts);
    await nextTurn();
    return true;
  }

  /** Replaces the file of the month. After a failure the counts are still in memory, for the next call. */
  async save(): Promise<void> {
    const file = this.#fileOf(this.#month);
    if (file === undefined || this.#rows.size === 0) return;
    try {
      const stream = createWriteStream(`${file}.tmp`, { mode: 0o600, flush: true });
      await pipeline(formatRows(this.#rows), stream);
      await rename(`${file}.tmp`, file);
    } catch (error) {
      this.#log.warn({ file, reason: String(error) }, 'reports not written');
    }
  }

  async #deleteOld(current: string): Promise<void> {
    const { folder } = this.#settings;
    if (folder === undefined) return;
    const oldest = new Date(`${current}-01T00:00:00Z`);
    oldest.setUTCMonth(oldest.getUTCMonth() - MONTHS_KEPT);
    const isOld = (name: string): boolean => {
      const [, month] = MONTH_FILE.exec(name) ?? [];
      return month !== undefined && month < oldest.toISOString().slice(0, 7);
    };
    try {
      for (const name of (await readdir(folder)).filter(isOld)) await rm(join(folder, name));
    } catch (error) {
      this.#log.warn({ folder, reason: String(error) }, 'old reports not deleted');
    }
  }

  async read(prefix: string, month: string): Promise<PrefixCounts> {
    const rows = month === this.#month ? this.#rows : await this.#load(month);
    return (rows.get(prefix) ?? new PrefixRow()).counts();
  }

  async #load(month: string): Promise<RowsByPrefix> {
    const rows: RowsByPrefix = new Map();
    const file = this.#fileOf(month);
    if (file === undefined) return rows;
    try {
      for await (const line of readFileLines(file)) {
        const { prefix, ...counts } = JSON.parse(line) as StoredRow;
        addTo(rows, prefix, counts);
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return rows;
      this.#log.error({ file, reason: String(error) }, 'reports damaged');
      // Otherwise the next write would replace the file.
      await rename(file, `${file}.damaged`).catch(() => undefined);
    }
    return rows;
  }

  #fileOf(month: string): string | undefined {
    const { folder } = this.#settings;
    return folder === undefined ? undefined : join(folder, `reports-${month}.ndjson`);
  }
}

type StoredRow = PrefixCounts & { prefix: string };

function addTo(rows: RowsByPrefix, prefix: string, counts: PrefixCounts): void {
  const row = rows.get(prefix) ?? new PrefixRow();
  rows.set(prefix, row);
  row.addCounts(counts);
}

function* formatRows(rows: RowsByPrefix): Generator<string> {
  for (const [prefix, row] of rows)
    yield `${JSON.stringify({ prefix, ...row.counts() } satisfies StoredRow)}\n`;
}
