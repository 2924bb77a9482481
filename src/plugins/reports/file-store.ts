// Resolution reports of a single instance without Redis: in memory, and in a file for each month.
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createTroubleReport } from '../../cache/redis/errors.js';
import { replaceFile } from '../../config/replace-file.js';
import type { Context } from '../../context.js';
import { errorText } from '../../errors.js';
import { type CountedReads, type PrefixCounts, type ReportStore, OTHER_PREFIXES } from './redis-store.js';
import { readFileLines } from '../../handle/streams.js';
import type { ReportsConfig } from './plugin.js';
import { PrefixRow } from './prefix-row.js';

/** Months before the current one whose files are kept, as in Redis. */
const MONTHS_KEPT = 14;
/** Matches the file of a month, also if it was damaged. */
const MONTH_FILE = /^reports-(\d{4}-\d{2})\.ndjson/;

type RowsByPrefix = Map<string, PrefixRow>;

/**
 * Holds the counts of the current month in memory, and those of earlier months until they are written; without a folder,
 * those of the month before it.
 */
export class FileReportStore implements ReportStore {
  readonly #troubles: ReturnType<typeof createTroubles>;
  readonly #months = new Map<string, RowsByPrefix>();
  #current = '';

  /** Without a folder, the reports end with the process. */
  constructor(
    private readonly settings: ReportsConfig['reports'],
    context: Context,
  ) {
    this.#troubles = createTroubles(context);
  }

  async add({ month, prefix, ...counts }: CountedReads): Promise<boolean> {
    const rows = this.#months.get(month) ?? (await this.#load(month, { isReplaced: true }));
    if (rows === undefined) return false;
    this.#months.set(month, rows);
    if (month !== this.#current) await this.#deleteOld(month);
    this.#current = month;
    const isFull = !rows.has(prefix) && rows.size >= this.settings.maxPrefixes;
    addTo(rows, isFull ? OTHER_PREFIXES : prefix, counts);
    await nextTurn();
    return true;
  }

  /** Replaces the files of the months in memory. After a failure the counts stay there, for the next call. */
  async save(): Promise<void> {
    for (const [month, rows] of this.#months)
      if ((await this.#write(month, rows)) && month !== this.#current) this.#months.delete(month);
  }

  /** Returns false if the counts are only in memory because they cannot be written. */
  async #write(month: string, rows: RowsByPrefix): Promise<boolean> {
    const file = this.#fileOf(month);
    if (file === undefined) return false;
    try {
      await replaceFile(file, formatRows(rows));
      return true;
    } catch (error) {
      this.#troubles.notWritten(error);
      return false;
    }
  }

  /** Counts the months instead of comparing dates, because the clock may be wrong. */
  async #deleteOld(current: string): Promise<void> {
    const { folder } = this.settings;
    if (folder === undefined) {
      // A report is asked for once its month has ended.
      for (const month of this.#months.keys())
        if (month !== current && month !== this.#current) this.#months.delete(month);
      return;
    }
    const monthOf = (name: string): string => MONTH_FILE.exec(name)?.[1] ?? current;
    try {
      const earlier = (await readdir(folder)).filter((name) => monthOf(name) < current);
      const kept = [...new Set(earlier.map(monthOf))].sort().slice(-MONTHS_KEPT);
      for (const name of earlier) if (!kept.includes(monthOf(name))) await rm(join(folder, name));
    } catch (error) {
      this.#troubles.notDeleted(error);
    }
  }

  async read(prefix: string, month: string): Promise<PrefixCounts | undefined> {
    const rows = this.#months.get(month) ?? (await this.#load(month));
    return rows && (rows.get(prefix) ?? new PrefixRow()).counts();
  }

  /** Reads a file; undefined if that fails. A damaged file that `save` will replace is renamed, and read up to the damage. */
  async #load(month: string, { isReplaced = false } = {}): Promise<RowsByPrefix | undefined> {
    const rows: RowsByPrefix = new Map();
    const file = this.#fileOf(month);
    if (file === undefined) return rows;
    try {
      for await (const line of readFileLines(file)) {
        const { prefix, ...counts } = JSON.parse(line) as StoredRow;
        addTo(rows, prefix, counts);
      }
      return rows;
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return rows;
      const failure = new Error(`${file}: ${errorText(error)}`);
      if (syscall === undefined)
        return (await this.#isDamageResolved(file, failure, isReplaced)) ? rows : undefined;
      this.#troubles.notRead(failure);
      return undefined;
    }
  }

  async #isDamageResolved(file: string, damage: Error, isReplaced: boolean): Promise<boolean> {
    this.#troubles.damaged(damage);
    if (!isReplaced) return false;
    try {
      await rename(file, `${file}.damaged`);
      return true;
    } catch (error) {
      this.#troubles.notWritten(error);
      return false;
    }
  }

  #fileOf(month: string): string | undefined {
    const { folder } = this.settings;
    return folder === undefined ? undefined : join(folder, `reports-${month}.ndjson`);
  }
}

export const createTroubleLog = ({ log, clock }: Context, message: string, remedy: string) =>
  createTroubleReport((reason, count) => {
    log.warn({ reason, remedy, count: count > 1 ? count : undefined }, message);
  }, clock.monotonic);

function createTroubles(context: Context) {
  const reporter = (message: string, remedy: string) => createTroubleLog(context, message, remedy);
  return {
    notRead: reporter('reports not read', 'let this user read the files in reports.folder'),
    damaged: reporter(
      'reports damaged',
      'restore the file from a backup, or delete it; that of the current month is renamed to .damaged',
    ),
    notWritten: reporter(
      'reports not written',
      'make room in reports.folder, and let this user write there; until then, the counts are in memory',
    ),
    notDeleted: reporter('old reports not deleted', 'let this user delete files in reports.folder'),
  };
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
