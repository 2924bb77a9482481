// The on-disk log of deletions since the snapshot, so that a restore brings no deleted record back.
import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Deleted } from '../../cache/store.js';
import { APPEND, readRegularText } from '../../config/given-files.js';

export type IsDeleted = (key: string) => boolean;

/**
 * Appends every deletion; each snapshot starts a new log. A write waits for the append, but not for an fsync:
 * the log survives a crash of the process, not a power loss.
 */
export class DeletionLog {
  readonly #file: string;

  constructor(snapshotFile: string) {
    this.#file = `${snapshotFile}.deleted`;
  }

  /** Appends a deletion. @throws Error when the disk cannot be written */
  add(deleted: Deleted): void {
    const log = openSync(this.#file, APPEND, 0o600);
    try {
      writeFileSync(log, `${JSON.stringify(deleted)}\n`);
    } finally {
      closeSync(log);
    }
  }

  /**
   * Starts a new log. Call it before reading the first entry of a snapshot, and call the returned function,
   * which removes older logs, once the snapshot is written.
   */
  startLog(): () => void {
    const before = `${this.#file}.${randomUUID()}`;
    try {
      renameSync(this.#file, before);
    } catch (error) {
      if (!isFileMissing(error)) throw error;
    }
    const older = this.#files().filter((file) => file !== this.#file);
    return () => {
      for (const file of older) tryRemove(file);
    };
  }

  /** Reads all logs. @throws Error when a log cannot be read */
  read(): IsDeleted {
    const keys = new Set<string>();
    const prefixes: string[] = [];
    for (const file of this.#files()) {
      for (const deleted of readDeletions(file)) {
        if ('key' in deleted) keys.add(deleted.key);
        else prefixes.push(deleted.prefix);
      }
    }
    return (key) => keys.has(key) || prefixes.some((prefix) => key.startsWith(prefix));
  }

  #files(): string[] {
    const folder = dirname(this.#file);
    const name = basename(this.#file);
    return readdirSync(folder)
      .filter((found) => found === name || found.startsWith(`${name}.`))
      .map((found) => join(folder, found));
  }
}

function readDeletions(file: string): Deleted[] {
  let text: string;
  try {
    text = readRegularText(file);
  } catch (error) {
    // A concurrent snapshot has removed the log.
    if (isFileMissing(error)) return [];
    throw error;
  }
  return text.split('\n').flatMap((line) => (line === '' ? [] : [parseLine(line)]));
}

/** Parses a line. A damaged line may have named any key, so it deletes all keys. */
function parseLine(line: string): Deleted {
  try {
    const { key, prefix } = JSON.parse(line) as { key?: unknown; prefix?: unknown };
    if (typeof key === 'string') return { key };
    if (typeof prefix === 'string') return { prefix };
  } catch {
    // Invalid JSON is treated like any other damaged line.
  }
  return { prefix: '' };
}

function tryRemove(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // A log remains, so its keys are not restored, but loaded on use.
  }
}

export const isFileMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';
