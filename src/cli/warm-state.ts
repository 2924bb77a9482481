// The state file of `warm`: a line for each loaded handle, with the time from which it is due again. It is only appended
// to, so a killed process loses little.
import { appendFileSync, readFileSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import { EXIT, Failure } from './failure.js';

interface WarmState {
  isDue: (handle: string) => boolean;
  /** `dueAt`: milliseconds since the epoch. */
  markDone: (handle: string, dueAt: number) => void;
  save: () => void;
}

const SAVE_EVERY_MS = 200;

/** @throws Failure when the file cannot be used, before anything is requested */
export function openState(file: string | undefined, now: () => number = Date.now): WarmState {
  const known = file === undefined ? new Map<string, number>() : readState(file);
  let unsaved = '';
  let savedAt = now();
  const save = (): void => {
    if (file !== undefined && unsaved !== '') appendFileSync(file, unsaved);
    unsaved = '';
    savedAt = now();
  };
  return {
    isDue: (handle) => (known.get(handle) ?? 0) <= now(),
    markDone(handle, dueAt) {
      unsaved += lineOf(handle, dueAt);
      if (now() - savedAt > SAVE_EVERY_MS) save();
    },
    save,
  };
}

const lineOf = (handle: string, dueAt: number): string => `${handle}\t${new Date(dueAt).toISOString()}\n`;

function readState(file: string): Map<string, number> {
  try {
    appendFileSync(file, '');
    return readLines(file, readFileSync(file));
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(
      `cannot use the state file: ${error instanceof Error ? error.message : ''}`,
      EXIT.usage,
    );
  }
}

function readLines(file: string, bytes: Buffer): Map<string, number> {
  const end = bytes.lastIndexOf('\n') + 1;
  if (end === 0 && bytes.length > 0) throw new Failure(describeDamage(file, 1), EXIT.usage);
  const lines = bytes.toString('utf8', 0, end).split('\n').slice(0, -1);
  const known = new Map<string, number>();
  for (const [at, line] of lines.entries()) {
    const [handle = '', time] = line.split('\t');
    // Files of 0.1.0 have no times.
    const dueAt = time === undefined ? 0 : Date.parse(time);
    if (!isHandle(handle) || Number.isNaN(dueAt)) throw new Failure(describeDamage(file, at + 1), EXIT.usage);
    known.set(handle, dueAt);
  }
  if (end < bytes.length) dropCutLine(file, end);
  if (lines.length > 2 * known.size) compact(file, known);
  return known;
}

/** Each run appends what it refreshes: without this the file would grow with every run. */
function compact(file: string, known: Map<string, number>): void {
  const temporary = `${file}.tmp`;
  writeFileSync(temporary, [...known].map(([handle, dueAt]) => lineOf(handle, dueAt)).join(''));
  renameSync(temporary, file);
}

/** A process that is killed while it appends leaves half a line, which could be the name of another handle. */
function dropCutLine(file: string, end: number): void {
  truncateSync(file, end);
  process.stderr.write(`${file}: the last line is cut off, so its handle is requested again\n`);
}

const isHandle = (line: string): boolean =>
  line !== '' && Buffer.byteLength(line) <= MAX_HANDLE_BYTES && !/[\u0000-\u001f\ufffd]/.test(line);

const describeDamage = (file: string, line: number): string =>
  `${file}: line ${line} is not a handle, or not a handle, a tab and a time. Remove the line, or the file to start anew.`;
