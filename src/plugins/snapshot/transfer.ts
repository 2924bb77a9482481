// The calls that export the records of a prefix, and import exported records.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import type { AdminHandlers, Host } from '../../app/plugin.js';
import { shiftTimes } from '../../cache/entry.js';
import { ServiceError } from '../../errors.js';
import { upperAscii } from '../../handle/handle.js';
import { createMemoryBudget, createWithBody } from '../../http/request-body.js';
import type { RestoredLines } from './plugin.js';
import { formatRecordLine } from './record-line.js';

/** Maximum body size of an import, and of all imports together. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_TOTAL_BYTES = 4 * MAX_BODY_BYTES;

const PAGE_BYTES = 512 * 1024;

/**
 * Trailer field (RFC 9110 §6.5) with the number of skipped "not found" entries, known only after the last
 * record.
 */
const NOT_FOUND_TRAILER = 'Export-Not-Found';

/** Yields lines in chunks; returns the number of handles cached as not found. */
type ExportedRecords = AsyncGenerator<string, number>;

interface Transfer {
  exportRecords: (prefix: string) => ExportedRecords;
  importLines: (text: string) => Promise<RestoredLines>;
}

export function createTransfer({ exportRecords, importLines }: Transfer): AdminHandlers {
  const withBody = createWithBody(createMemoryBudget(MAX_TOTAL_BYTES), MAX_BODY_BYTES);
  return {
    async exportRecords({ query: { prefix } }, res) {
      if (!isPrefix(prefix))
        throw new ServiceError('BAD_PARAMETER', { detail: 'give ?prefix=… without a slash' });
      Object.assign(res.locals, { details: { prefix } });
      res.type('application/x-ndjson').set('Trailer', NOT_FOUND_TRAILER);
      await pipeline(countedAtEnd(exportRecords(prefix), res), res).catch(ignoreClientGone);
    },
    async importRecords(req, res) {
      const counts = await withBody(req, (body) => importLines(body.toString()));
      Object.assign(res.locals, { details: counts });
      res.json(counts);
    },
  };
}

/** Whether the parameter is a prefix, without a slash. */
const isPrefix = (given: unknown): given is string =>
  typeof given === 'string' && given !== '' && !given.includes('/');

async function* countedAtEnd(records: ExportedRecords, res: Response): AsyncGenerator<string> {
  const missing = yield* records;
  res.addTrailers({ [NOT_FOUND_TRAILER]: String(missing) });
}

/** @throws any error except a client disconnect */
function ignoreClientGone(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
}

/** Exports the records of a prefix in memory. */
export async function* exportRecords({ cache: { memory }, clock }: Host, prefix: string): ExportedRecords {
  const isWanted = isUnder(prefix);
  let missing = 0;
  for (let from: number | undefined = 0; from !== undefined;) {
    const { entries, next } = memory.readFrom(from, PAGE_BYTES);
    const toWallMs = clock.wall() - clock.now();
    const lines = entries
      .filter(({ key }) => isWanted(key))
      .map(({ key, entry }) => formatRecordLine({ key, entry: shiftTimes(entry, toWallMs) }));
    missing += lines.filter((line) => line === undefined).length;
    const text = lines.join('');
    if (text !== '') yield text;
    from = next;
    await nextTurn();
  }
  return missing;
}

/** Returns a predicate that matches the handles of a prefix, and the record of the prefix itself. */
function isUnder(prefix: string): (key: string) => boolean {
  const folded = upperAscii(prefix);
  return (key) => key.startsWith(`${folded}/`) || key === `0.NA/${folded}`;
}
