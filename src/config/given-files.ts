// Reads files that the configuration names.
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/**
 * Reads a regular file. @throws Error for anything else: a reload reads while requests wait, and a named pipe has no end
 * until another process writes to it
 */
export function readRegularFile(path: string): Buffer {
  // Opening a named pipe would block too.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
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
