// `resolve`: prints the record of a handle and its cache entries.
import { handleToPath } from '../handle/handle.js';
import { type AdminOptions, askAdmin, fetchOrFail } from './client.js';
import { Failure } from './failure.js';
import { readHandleName } from './handle-name.js';
import { type ListOptions, resolveList } from './resolve-list.js';
import {
  type CacheEntryReport,
  cacheEntryLine,
  readRecord,
  recordLines,
  recordTable,
} from './record-table.js';
import { printableLines } from './terminal.js';

export interface ResolveOptions extends AdminOptions, ListOptions {}

/** `-` stands for the handles of standard input. */
export async function resolve(given: string, options: ResolveOptions): Promise<void> {
  if (given === '-') {
    await resolveList(options);
    return;
  }
  const handle = readHandleName(given);
  const base = options.direct ?? options.proxy;
  const response = await fetchOrFail(`${base}/api/handles/${handleToPath(handle)}`);
  process.stdout.write(`${formatBody(await response.text(), options)}\n`);
  process.stderr.write(`${response.status} · ${response.headers.get('cache-status') ?? 'no Cache-Status'}\n`);
  if (options.direct === undefined) await printCacheEntries(handle, options);
  if (!response.ok) throw new Failure(`status ${response.status}`);
}

/** A table on a terminal; in a pipe the body unchanged, for a program that parses it. */
function formatBody(text: string, { json = false, plain = false }: ResolveOptions): string {
  const { isTTY, columns } = process.stdout;
  const record = json ? undefined : readRecord(text);
  if (record !== undefined && plain) return recordLines(record);
  if (record !== undefined && isTTY) return recordTable(record, columns);
  return isTTY ? printableLines(text.trimEnd()) : text.trimEnd();
}

/** An unreachable admin listener is no failure: many users of `resolve` do not operate the proxy. */
async function printCacheEntries(handle: string, options: AdminOptions): Promise<void> {
  try {
    const report = await askAdmin(options, `/cache?handle=${encodeURIComponent(handle)}`);
    const { copies } = report as { copies: CacheEntryReport[] };
    const lines = copies.length === 0 ? ['not cached'] : copies.map(cacheEntryLine);
    process.stderr.write(`${lines.join('\n')}\n`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`cache entries unknown: ${error.message}\n`);
  }
}
