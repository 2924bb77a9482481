// Opens files that the configuration names, without waiting for named pipes.
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { tryDecode } from '../handle/bytes.js';

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * Flags for reading and for appending. A named pipe without another end is empty or fails, instead of blocking a thread: Node.js
 * waits for its threads at exit, and so would never exit.
 */
export const READ = O_RDONLY | O_NONBLOCK;
export const APPEND = O_APPEND | O_CREAT | O_WRONLY | O_NONBLOCK;

/** Whether a rename to a path replaces nothing but a regular file: as root it would replace /dev/null, too. */
export const isReplaceable = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isFile() !== false;

/** Links to follow, as many as Linux follows. */
const MAX_LINKS = 40;

/** Returns the file to replace by a rename, which is that of a link, such as /dev/stdout, also if it does not exist yet. */
export function fileBehindLink(path: string, maxLinks = MAX_LINKS): string {
  if (existsSync(path)) return lstatSync(path).isSymbolicLink() ? realpathSync(path) : path;
  const target = maxLinks === 0 ? undefined : tryDecode((link) => readlinkSync(link), path);
  return target === undefined ? path : fileBehindLink(resolve(dirname(path), target), maxLinks - 1);
}

/** Reads a regular file. @throws Error for any other: a named pipe has no end, and a reload would wait */
export function readRegularFile(path: string): Buffer {
  const file = openSync(path, READ);
  try {
    const found = fstatSync(file);
    // The error for a folder is that of the system.
    if (!found.isFile() && !found.isDirectory()) throw new Error('it is not a regular file');
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

export const readRegularText = (path: string): string => readRegularFile(path).toString();
