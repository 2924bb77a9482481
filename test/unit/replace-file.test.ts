// A file is replaced also where its folder cannot be synced.
import { readFileSync, readdirSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { replaceFile } from '../../src/config/replace-file.js';
import { newFolder } from '../support/folder.js';

vi.mock(import('node:fs/promises'), async (original) => {
  const files = await original();
  // As without the right to read a folder, which root always has.
  const open = (path: string, flags: string, mode?: number): Promise<FileHandle> =>
    flags === 'r' ? Promise.reject(new Error('EACCES')) : files.open(path, flags, mode);
  return { ...files, open: open as typeof files.open };
});

test('a file is replaced in a folder that this user may write, but not read', async () => {
  const folder = newFolder();
  const file = join(folder, 'state');
  await replaceFile(file, ['older']);
  expect(await replaceFile(file, ['new', 'er'])).toBe(5);
  expect(readFileSync(file, 'utf8')).toBe('newer');
  expect(readdirSync(folder)).toEqual(['state']);
});
