// Reads a seed file: one JSON object per line with `handle` and `values`, as written by `export`.
import { readFileLines } from '../handle/streams.js';
import type { RecordInput } from './store.js';
import { valueFromJson } from './value.js';

/** @throws Error when the file cannot be read, or with the number of an invalid line */
export async function readSeedFile(file: string): Promise<Record<string, RecordInput>> {
  const records = new Map<string, RecordInput>();
  let number = 0;
  for await (const line of readFileLines(file)) {
    number++;
    if (line.trim() === '') continue;
    const record = parseRecord(line);
    if (record === undefined) throw new Error(`line ${number} of ${file} is not a record`);
    records.set(record.handle, record.values);
  }
  return Object.fromEntries(records);
}

function parseRecord(line: string): { handle: string; values: RecordInput } | undefined {
  try {
    const { handle, values } = JSON.parse(line) as { handle?: unknown; values?: unknown };
    if (typeof handle !== 'string' || !/^[^/]+\/./.test(handle) || !Array.isArray(values)) return undefined;
    for (const value of values) valueFromJson(value, 0);
    return { handle, values };
  } catch {
    return undefined;
  }
}

/** Returns the distinct prefixes of handles. A prefix record (`0.NA/<prefix>`) counts for its prefix. */
export const prefixesOf = (handles: readonly string[]): string[] => [
  ...new Set(
    handles.map((handle) =>
      handle
        .replace(/^0\.NA\//i, '')
        .split('/', 1)
        .join(''),
    ),
  ),
];
