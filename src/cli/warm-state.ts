// The state file of `warm`: the finished handles, one per line. It is only appended to, so a killed process loses little.
import { appendFileSync, existsSync, readFileSync, truncateSync } from 'node:fs';
import { MAX_HANDLE_BYTES } from '../handle/handle.js';
import { EXIT, Failure } from './failure.js';

export interface WarmState {
  isDone: (handle: string) => boolean;
  markDone: (handle: string) => void;
  save: () => void;
}

const SAVE_EVERY_MS = 200;

/** @throws Failure when the file cannot be used, before anything is requested */
export function openState(file: string | undefined): WarmState {
  const done = new Set(file === undefined ? [] : readState(file));
  let unsaved: string[] = [];
  let savedAt = Date.now();
  const save = (): void => {
    if (file !== undefined && unsaved.length > 0) appendFileSync(file, `${unsaved.join('\n')}\n`);
    unsaved = [];
    savedAt = Date.now();
  };
  return {
    isDone: (handle) => done.has(handle),
    markDone(handle) {
      unsaved.push(handle);
      if (Date.now() - savedAt > SAVE_EVERY_MS) save();
    },
    save,
  };
}

function readState(file: string): string[] {
  let bytes: Buffer;
  try {
    bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
    appendFileSync(file, '');
  } catch (error) {
    throw new Failure(
      `cannot use the state file: ${error instanceof Error ? error.message : ''}`,
      EXIT.usage,
    );
  }
  const end = bytes.lastIndexOf('\n') + 1;
  if (end === 0 && bytes.length > 0) throw new Failure(describeDamage(file, 1), EXIT.usage);
  const lines = bytes.toString('utf8', 0, end).split('\n').slice(0, -1);
  const damaged = lines.findIndex((line) => !isHandle(line));
  if (damaged >= 0) throw new Failure(describeDamage(file, damaged + 1), EXIT.usage);
  if (end < bytes.length) dropCutLine(file, end);
  return lines;
}

/** A process that is killed while it appends leaves half a line, which could be the name of another handle. */
function dropCutLine(file: string, end: number): void {
  truncateSync(file, end);
  process.stderr.write(`${file}: the last line is cut off, so its handle is requested again\n`);
}

const isHandle = (line: string): boolean =>
  line !== '' && Buffer.byteLength(line) <= MAX_HANDLE_BYTES && !/[\u0000-\u001f\ufffd]/.test(line);

const describeDamage = (file: string, line: number): string =>
  `${file}: line ${line} is not a handle. Remove the line, or the file to start anew.`;
