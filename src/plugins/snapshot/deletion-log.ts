// The on-disk log of deletions since the snapshot, so that a restore brings no deleted record back.
import { randomUUID } from 'node:crypto';
import { readdir, rename, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { untilDeadline } from '../../clock.js';
import { PrefixMap } from '../../handle/prefix-map.js';
import type { Deleted } from '../../cache/store.js';
import { APPEND } from '../../config/given-files.js';
import { tryDecode } from '../../handle/bytes.js';
import { readFileLines } from '../../handle/streams.js';
import { SerialFlight } from '../../resolver/single-flight.js';
import { afterHalves } from '../../upstream/exchange.js';

export type IsDeleted = (key: string) => boolean;

/** Maximum time that a write waits for its line (ms), as for a destination of changes. */
const WAIT_MS = 500;

/** Maximum number of deletions that wait for the disk; more are logged as a deletion of all keys. */
const MAX_WAITING = 10_000;

/**
 * Maximum characters of a log, which holds 400,000 usual handles: anyone can delete entries, also missing ones, by
 * authoritative reads. A log that is longer ends with a deletion of all keys.
 */
const MAX_LOG_CHARS = 32 * 1024 ** 2;

const EVERYTHING: Deleted = { prefix: '' };

const lineOf = (deleted: Deleted): string => `${JSON.stringify(deleted)}\n`;

interface LogFailures {
  /** The disk does not respond. The lines are still written if it does before the process ends. */
  onLate: (error: unknown) => void;
  onFailed: (error: unknown) => Promise<void>;
}

/**
 * Appends every deletion; each snapshot starts a new log. A write waits for the append, but not for an fsync:
 * the log survives a crash of the process, not a power loss.
 */
export class DeletionLog {
  readonly #file: string;
  readonly #appends = new SerialFlight();
  #waiting: Deleted[] = [];
  #isLate = false;
  /** Characters of the current log. */
  #logged = 0;

  constructor(
    snapshotFile: string,
    private readonly failures: LogFailures,
  ) {
    this.#file = `${snapshotFile}.deleted`;
  }

  /** Whether the disk does not respond: then no write waits for it. */
  get isLate(): boolean {
    return this.#isLate;
  }

  /** Appends a deletion, together with those that wait for the disk. Settles also if the disk fails or does not respond. */
  async add(deleted: Deleted): Promise<void> {
    if (this.#waiting.length === MAX_WAITING) this.#waiting = [EVERYTHING];
    this.#waiting.push(deleted);
    const appended = this.#appends.join('', () => this.#append());

    if (this.#isLate) return;
    const late = (): Error => new Error('the disk does not respond');
    await untilDeadline(appended, WAIT_MS, late, { after: afterHalves }).catch((error: unknown) => {
      // Several writes may have waited.
      if (this.#isLate) return;
      this.#isLate = true;
      this.failures.onLate(error);
    });
  }

  async #append(): Promise<void> {
    const lines = this.#waiting.splice(0).map(lineOf).join('');
    if (this.#logged > MAX_LOG_CHARS) return;
    this.#logged += lines.length;
    const text = this.#logged > MAX_LOG_CHARS ? lineOf(EVERYTHING) : lines;
    try {
      await writeFile(this.#file, text, { flag: APPEND, mode: 0o600 });
    } catch (error) {
      await this.failures.onFailed(error);
    }
    this.#isLate = false;
  }

  /** Starts a new log before a snapshot is read; the result removes older logs, once it is written. */
  async startLog(): Promise<() => Promise<void>> {
    const before = `${this.#file}.${randomUUID()}`;
    // Before the new log starts, so that it misses no line.
    this.#logged = 0;
    await rename(this.#file, before).catch(exceptMissing);
    const older = (await this.#files()).filter((file) => file !== this.#file);
    return async () => {
      // A log that remains costs only a load: its keys are not restored.
      for (const file of older) await unlink(file).catch(() => undefined);
    };
  }

  /** Reads all logs. @throws Error when a log cannot be read */
  async read(): Promise<IsDeleted> {
    const keys = new Set<string>();
    const prefixes = new PrefixMap<true>();
    for (const file of await this.#files()) {
      for await (const deleted of readDeletions(file)) {
        if ('key' in deleted) keys.add(deleted.key);
        else prefixes.set(deleted.prefix, true);
      }
    }
    return (key) => keys.has(key) || prefixes.matching(key).next().value === true;
  }

  async #files(): Promise<string[]> {
    const folder = dirname(this.#file);
    const name = basename(this.#file);
    return (await readdir(folder))
      .filter((found) => found === name || found.startsWith(`${name}.`))
      .map((found) => join(folder, found));
  }
}

/** Yields none if a concurrent snapshot has removed the log. */
async function* readDeletions(file: string): AsyncGenerator<Deleted, void> {
  try {
    for await (const line of readFileLines(file)) if (line !== '') yield parseLine(line);
  } catch (error) {
    exceptMissing(error);
  }
}

/** Parses a line. A damaged line may have named any key, so it deletes all keys. */
function parseLine(line: string): Deleted {
  const { key, prefix } = (tryDecode(JSON.parse, line) ?? {}) as { key?: unknown; prefix?: unknown };
  if (typeof key === 'string') return { key };
  return typeof prefix === 'string' ? { prefix } : EVERYTHING;
}

export const isFileMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';

function exceptMissing(error: unknown): void {
  if (!isFileMissing(error)) throw error;
}
