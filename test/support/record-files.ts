// Builds record files as `export` writes them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { STARTED_AT } from './proxy.js';
import { newFolder } from './snapshot.js';
import { urlValue } from './upstream.js';

/** Returns the ISO time `ms` milliseconds after the start of the test clock. */
export const isoTime = (ms: number): string => new Date(STARTED_AT + ms).toISOString();

/** Returns the line of a record that became stale at the start of the test clock. */
export const recordLine = (
  handle: string,
  values: unknown[] = [urlValue('https://example.org/seed')],
): string =>
  JSON.stringify({
    handle,
    requestedAt: isoTime(-60_000),
    staleAt: isoTime(0),
    deleteAt: isoTime(1000),
    values,
  });

export function fileOf(text: string | Buffer): string {
  const file = join(newFolder(), 'records.ndjson.gz');
  writeFileSync(file, text);
  return file;
}
