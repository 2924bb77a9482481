// Builds record files as `export` writes them.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import request from 'supertest';
import { type Proxy, STARTED_AT } from './proxy.js';
import { newFolder } from './folder.js';
import { urlValue } from './upstream.js';

/** Lines of about 400 bytes then fit into the maximum body. */
const LINES_PER_BODY = 10_000;

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

/** Imports lines, in bodies that the admin listener accepts. Returns the number of stored records. */
export async function importLines({ app }: Pick<Proxy, 'app'>, lines: readonly string[]): Promise<number> {
  let restored = 0;
  for (let at = 0; at < lines.length; at += LINES_PER_BODY) {
    const body = lines.slice(at, at + LINES_PER_BODY).join('\n');
    const response = await request(app.admin).post('/import').type('text').send(body).expect(200);
    restored += (response.body as { restored: number }).restored;
  }
  return restored;
}
