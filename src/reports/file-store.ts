// Resolution reports of a single instance without Redis: in memory, and in a file for each month.
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Context } from '../context.js';
import {
  type CountedReads,
  type NameCounts,
  type PrefixCounts,
  type ReportStore,
  MAX_REPORTED_NAMES,
  OTHER_PREFIXES,
} from '../coordination/report-store.js';
import { readFileLines } from '../handle/file-lines.js';
import { TopCounts } from '../observe/top-counts.js';

interface FileStoreOptions {
  /** Undefined: the reports end with the process. */
  folder: string | undefined;
  maxPrefixes: number;
}

/** Reports are kept for fourteen months. */
const KEPT_MONTHS = 14;

const NO_COUNTS: PrefixCounts = {
  totals: {},
  handles: { names: [], maxError: 0 },
  unknown: { names: [], maxError: 0 },
};

/** Holds the counts of one month in memory, normally the current one. */
export class FileReportStore implements ReportStore {
  readonly #options: FileStoreOptions;
  readonly #context: Pick<Context, 'log'>;
  #month = '';
  #rows = new Map<string, SummedRow>();
  #isFailing = false;

  constructor(options: FileStoreOptions, context: Pick<Context, 'log'>) {
    this.#options = options;
    this.#context = context;
  }

  async add({ month, prefix, ...counts }: CountedReads): Promise<boolean> {
    if (month !== this.#month) await this.#open(month);
    const isFull = !this.#rows.has(prefix) && this.#rows.size >= this.#options.maxPrefixes;
    const name = isFull ? OTHER_PREFIXES : prefix;
    const row = this.#rows.get(name) ?? new SummedRow(NO_COUNTS);
    this.#rows.set(name, row);
    row.add(counts);
    return true;
  }

  /** Writes the month to its file. A failure is logged once; the counts stay in memory until a write succeeds. */
  async save(): Promise<void> {
    const { folder } = this.#options;
    if (folder === undefined || this.#month === '') return;
    const file = fileOf(folder, this.#month);
    try {
      await writeRows(file, this.#rows);
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#context.log.warn({ file, reason: String(error) }, 'reports not written');
      this.#isFailing = true;
    }
  }

  async read(prefix: string, month: string): Promise<PrefixCounts> {
    const rows = month === this.#month ? this.#rows : await this.#load(month);
    return rows.get(prefix)?.counts() ?? NO_COUNTS;
  }

  async #open(month: string): Promise<void> {
    await this.save();
    this.#rows = await this.#load(month);
    this.#month = month;
    const { folder } = this.#options;
    if (folder !== undefined) await rm(fileOf(folder, monthBefore(month, KEPT_MONTHS)), { force: true });
  }

  async #load(month: string): Promise<Map<string, SummedRow>> {
    const rows = new Map<string, SummedRow>();
    const { folder } = this.#options;
    if (folder === undefined) return rows;
    const file = fileOf(folder, month);
    try {
      for await (const line of readFileLines(file)) {
        const { prefix, ...counts } = JSON.parse(line) as StoredRow;
        rows.set(prefix, new SummedRow(counts));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return rows;
      this.#context.log.error({ file, reason: String(error) }, 'reports damaged');
      // Otherwise the next write would replace the file.
      await rename(file, `${file}.damaged`).catch(() => undefined);
    }
    return rows;
  }
}

type StoredRow = PrefixCounts & Pick<CountedReads, 'prefix'>;

/** The counts of a prefix since the start of the month. */
class SummedRow {
  readonly #totals: Record<string, number>;
  readonly #handles: SummedNames;
  readonly #unknown: SummedNames;

  constructor({ totals, handles, unknown }: PrefixCounts) {
    this.#totals = { ...totals };
    this.#handles = new SummedNames(handles);
    this.#unknown = new SummedNames(unknown);
  }

  add({ totals, handles, unknown }: PrefixCounts): void {
    for (const [field, count] of Object.entries(totals))
      this.#totals[field] = (this.#totals[field] ?? 0) + count;
    this.#handles.add(handles);
    this.#unknown.add(unknown);
  }

  counts(): PrefixCounts {
    return { totals: this.#totals, handles: this.#handles.counts(), unknown: this.#unknown.counts() };
  }
}

class SummedNames {
  readonly #top = new TopCounts(MAX_REPORTED_NAMES / 2);
  /** The sum of the errors of all lists that were added. */
  #error = 0;

  constructor(names: NameCounts) {
    this.add(names);
  }

  add({ names, maxError }: NameCounts): void {
    for (const [name, count] of names) this.#top.add(name, count);
    this.#error += maxError;
  }

  counts(): NameCounts {
    return { names: [...this.#top.counts], maxError: this.#error + this.#top.floor };
  }
}

const fileOf = (folder: string, month: string): string => join(folder, `reports-${month}.ndjson`);

function monthBefore(month: string, months: number): string {
  const date = new Date(`${month}-01T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() - months);
  return date.toISOString().slice(0, 7);
}

/** Writes a line for each row to a temporary file, which then replaces the previous file. */
async function writeRows(file: string, rows: ReadonlyMap<string, SummedRow>): Promise<void> {
  const temporary = `${file}.tmp`;
  await pipeline(Readable.from(linesOf(rows)), createWriteStream(temporary, { mode: 0o600, flush: true }));
  await rename(temporary, file);
}

function* linesOf(rows: ReadonlyMap<string, SummedRow>): Generator<string> {
  for (const [prefix, row] of rows)
    yield `${JSON.stringify({ prefix, ...row.counts() } satisfies StoredRow)}\n`;
}
