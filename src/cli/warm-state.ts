// What `warm` has done, in a file that a later run reads: a line for each handle.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export interface WarmState {
  isDone: (handle: string) => boolean;
  done: (handle: string) => void;
  /** Writes what is not yet written. */
  save: () => void;
}

const SAVED_MS = 200;

/** Without a file nothing is remembered. Lines are only added, so that a process that is killed loses little. */
export function createWarmState(file: string | undefined): WarmState {
  const known = file !== undefined && existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const done = new Set(known);
  let unsaved: string[] = [];
  let savedAt = Date.now();
  const save = (): void => {
    if (file !== undefined && unsaved.length > 0) appendFileSync(file, `${unsaved.join('\n')}\n`);
    unsaved = [];
    savedAt = Date.now();
  };
  return {
    isDone: (handle) => done.has(handle),
    done(handle) {
      unsaved.push(handle);
      if (Date.now() - savedAt > SAVED_MS) save();
    },
    save,
  };
}
