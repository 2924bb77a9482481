// Formats command output (escaped text, tables, CSV, progress), and defines failures with exit codes.
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileBehindLink, isReplaceable } from '../config/given-files.js';
import { printableText } from '../handle/handle.js';

export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** Ends the command with this message on stderr. */
export class Failure extends Error {
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}

/** Returns the file to replace by a rename. @throws Failure for a device or a folder, and without the folder of the file */
export function replaceableFile(file: string): string {
  if (!isReplaceable(file)) throw new Failure(`${file} is not a regular file`, EXIT.usage);
  const behind = fileBehindLink(file);
  if (!existsSync(dirname(behind)))
    throw new Failure(`create ${dirname(behind)} first: it does not exist`, EXIT.usage);
  return behind;
}

/** Creates a folder and those above it: `recursive` of Node.js never returns where a file system refuses it, as /proc does. */
export function createFolder(folder: string): void {
  const parent = dirname(folder);
  if (existsSync(folder) || parent === folder) return;
  createFolder(parent);
  // That has created the folder too, if its name is `..`.
  if (!existsSync(folder)) mkdirSync(folder);
}

/** Prints a line; on a terminal without control characters, which a server or record may have written. */
export const print = (text: string): boolean =>
  process.stdout.write(`${process.stdout.isTTY ? printableLines(text) : text}\n`);
export const printNote = (text: string): boolean => process.stderr.write(`${printableLines(text)}\n`);

/** Applies `printable` to all but line breaks and tabs. */
export const printableLines = (text: string): string => text.replace(/[^\n\t]+/g, printableText);

export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`;

/** Maximum width of a column, so that a long cell moves the rest of its row instead of lengthening each other row. */
const MAX_WIDTH = 80;

/** Formats each row as a line with aligned columns; `rightAligned` lists the columns to right-align. */
export function tableLines(
  rows: readonly (readonly string[])[],
  rightAligned: readonly number[] = [],
): string[] {
  // Not as arguments of one call, whose number the stack limits: a record can have millions of values.
  const widthOf = (at: number): number => rows.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), 0);
  const widths = rows[0]?.map((_, at) => Math.min(MAX_WIDTH, widthOf(at))) ?? [];
  const pad = (cell: string, at: number): string =>
    rightAligned.includes(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0);
  return rows.map((row) => [...row.slice(0, -1).map(pad), ...row.slice(-1)].join('  '));
}

/** Table rows; those without a value are omitted. */
export type Rows = readonly (readonly [name: string, value: string | undefined])[];

export function printSection(heading: string, rows: Rows): string {
  const shown = rows.filter((row): row is readonly [string, string] => row[1] !== undefined);
  const lines = shown.length === 0 ? ['none'] : tableLines(shown);
  return [heading, ...lines.map((line) => `  ${line}`)].join('\n');
}

/** Prints progress every two seconds, with the remaining time if `total` is known. */
export function startCounter(noun: string, total?: number) {
  const startedAt = Date.now();
  let count = 0;
  const timer = setInterval(() => {
    const rate = (count * 1000) / Math.max(1, Date.now() - startedAt);
    const counted = total === undefined ? countText(count, noun) : `${count} of ${countText(total, noun)}`;
    const left = total === undefined || count === 0 ? '' : `, ${Math.ceil((total - count) / rate)} s left`;
    printNote(`${counted}, ${Math.round(rate)}/s${left}`);
  }, 2000).unref();
  return {
    add(more: number): void {
      count += more;
    },
    stop: (): void => clearInterval(timer),
  };
}

export type CsvRows = readonly (readonly (string | number)[])[];

/** Formats rows as RFC 4180 describes. */
export const csvText = (rows: CsvRows): string =>
  rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');

/**
 * Formats a cell. Anyone can request a handle that a spreadsheet would execute as a formula, so a text that
 * begins like one gets an apostrophe (OWASP, CSV Injection).
 */
function csvCell(cell: string | number): string {
  if (typeof cell === 'number') return String(cell);
  const inert = /^[=+\-@\t\r\n＝＋－＠]/.test(cell) ? `'${cell}` : cell;
  return `"${inert.replaceAll('"', '""')}"`;
}
