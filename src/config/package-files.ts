// Reads files of this package, from source, from the bundle, or in a program that bundles `src`.
import { existsSync, readFileSync } from 'node:fs';

const ROOT = findRoot(new URL('.', import.meta.url));

function findRoot(folder: URL): URL {
  if (existsSync(new URL('package.json', folder))) return folder;
  const above = new URL('..', folder);
  if (above.href === folder.href) throw new Error('package.json is missing');
  return findRoot(above);
}

export const readPackageFile = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');

export const { version: VERSION } = JSON.parse(readPackageFile('package.json')) as { version: string };
