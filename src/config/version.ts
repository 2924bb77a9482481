// The version of this package.
import { existsSync, readFileSync } from 'node:fs';

/** Beside `dist` and `src`; a folder further up for programs that compile `src` with their own sources. */
const PLACES = ['../../package.json', '../../../package.json'];

export const VERSION = readVersion();

function readVersion(): string {
  const file = PLACES.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (file === undefined) throw new Error('package.json is missing');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
