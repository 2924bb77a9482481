// Puts records of the snapshot, of the seed and of imports into memory, and exports records.
import { pipeline } from 'node:stream/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Response } from 'express';
import type { Started, AdminHandlers } from '../../plugin.js';
import type { Host } from '../../host.js';
import { type KeyedEntry, shiftTimes } from '../../cache/entry.js';
import { makeUncheckedEntry } from '../../cache/policy.js';
import { fileBehindLink } from '../../config/given-files.js';
import { describeServers, upstreamServers } from '../../config/upstream-servers.js';
import { ServiceError, errorText } from '../../errors.js';
import { readFileLines } from '../../handle/streams.js';
import { upperAscii } from '../../handle/handle.js';
import { createMemoryBudget, createWithBody } from '../../http/request-body.js';
import { METRICS, type RestoredLines, type SnapshotConfig } from './plugin.js';
import { parseRecordLine, formatRecordLine } from './format.js';
import { Snapshot } from './snapshot.js';

export function start(host: Host, settings: SnapshotConfig): Started {
  const { memory } = host.cache;
  const restore = createRestore(host);
  const restoreLines = createRestoreLines(host, restore);
  const snapshot = createSnapshot(host, settings, restore);
  host.metrics.readGauge(METRICS.written, () => Math.round((snapshot?.writtenAt ?? 0) / 1000));
  host.metrics.readGauge(METRICS.failing, () => (snapshot?.isFailing === true ? 1 : 0));
  const { file } = settings.seed;
  // Without a Handle server, every record comes from the seed.
  let isReady = file === undefined || upstreamServers(settings).length > 0;
  host.readiness.register('seed', () => isReady);
  const ticket = memory.moment();
  const restoreAll = async (): Promise<void> => {
    // Snapshot records are newer than seed records, so they are restored first.
    await snapshot?.start();
    if (file === undefined) return;
    const maxChars = settings.upstream.maxRecordBytes + HEAD_CHARS;
    await readSeed(host, { file, maxChars }, (lines, counts) => restoreLines(lines, counts, ticket));
    isReady = true;
  };
  return {
    restored: restoreAll(),
    deleted: snapshot && ((deleted) => snapshot.recordDeletion(deleted)),
    adminHandlers: createTransfer({
      exportRecords: (prefix) => exportRecords(host, prefix),
      async importLines(text) {
        const counts = noLines();
        await restoreLines(linesIn(text), counts, memory.moment());
        host.metrics.counterOf(METRICS.restored)({ source: 'import' }, counts.restored);
        return counts;
      },
    }),
    close: snapshot && (() => snapshot.close()),
  };
}

type Restore = (kept: KeyedEntry, ticket: number) => Exclude<keyof RestoredLines, 'rejected'>;

/** Creates the function that puts a record into memory, without revalidation. */
function createRestore({ cache, clock, staleIfErrorMs, upstreams: { isServed } }: Host): Restore {
  return ({ key, entry }, ticket) => {
    const [now, wallTime] = [clock.now(), clock.wall()];
    const kept = { now, wallTime, staleIfErrorMs: staleIfErrorMs(key), hasServer: isServed(key) };
    const unchecked = makeUncheckedEntry(entry, kept);
    return unchecked.deleteAt > now ? cache.memory.restore(key, unchecked, ticket) : 'expired';
  };
}

function createSnapshot(host: Host, settings: SnapshotConfig, restore: Restore): Snapshot | undefined {
  const { file, everyMs } = settings.cache.snapshot;
  if (file === undefined) return undefined;
  const { caseSensitive } = settings.upstream;
  // Not `describeUpstream`: snapshots of earlier versions stay valid.
  const identity = JSON.stringify({ upstream: describeServers(upstreamServers(settings)), caseSensitive });
  const restoreOne = (kept: KeyedEntry, ticket: number): boolean => restore(kept, ticket) === 'restored';
  return new Snapshot({ file: fileBehindLink(file), everyMs, identity, restore: restoreOne }, host);
}

const noLines = (): RestoredLines => ({ restored: 0, kept: 0, expired: 0, full: 0, rejected: 0 });

type Lines = Iterable<string> | AsyncIterable<string>;

/** Characters of a line besides its values: the handle, escaped, and the times. */
const HEAD_CHARS = 16 * 1024;
/** Characters parsed per event-loop turn, during which requests wait. */
const TURN_CHARS = 64 * 1024;
/** The cost of reading a line, also an empty one, in characters. */
const LINE_CHARS = 16;

/** Creates the function that puts the records of lines into memory, and adds the lines to the counts. */
function createRestoreLines({ refOf }: Host, restore: Restore) {
  return async (lines: Lines, counts: RestoredLines, ticket: number): Promise<void> => {
    let chars = 0;
    for await (const line of lines) {
      const parsed = line === '' ? undefined : parseRecordLine(line, refOf);
      if (parsed !== undefined) counts[restore(parsed, ticket)]++;
      else if (line !== '') counts.rejected++;
      chars += line.length + LINE_CHARS;
      if (chars < TURN_CHARS) continue;
      chars = 0;
      await nextTurn();
    }
  };
}

/** Yields lines one by one: a list of four million empty lines would take more memory than the text. */
function* linesIn(text: string): Generator<string> {
  for (const [line] of text.matchAll(/[^\n]+/g)) yield line;
}

/** Restores the seed file and logs the result. Never rejects. */
async function readSeed(
  { log, metrics, clock }: Host,
  { file, maxChars }: { file: string; maxChars: number },
  restoreLines: (lines: Lines, counts: RestoredLines) => Promise<void>,
): Promise<void> {
  const startedAt = clock.monotonic();
  const counts = noLines();
  let reason: string | undefined;
  try {
    await restoreLines(readFileLines(file, maxChars), counts);
  } catch (error) {
    reason = errorText(error);
  }
  const { restored, kept, expired, full, rejected } = counts;
  const records = restored + kept + expired + full;
  metrics.counterOf(METRICS.restored)({ source: 'seed' }, restored);
  if (rejected > 0) reason ??= 'lines that are no records';
  if (reason !== undefined) log.warn({ file, reason, lines: rejected }, 'seed rejected');
  const ms = Math.round(clock.monotonic() - startedAt);
  if (records > 0) log.info({ file, records, restored, ms }, 'seed loaded');
}

/** Maximum body size of an import, and of all imports together. */
const MAX_BODY_BYTES = 4 * 1024 ** 2;
const MAX_TOTAL_BYTES = 4 * MAX_BODY_BYTES;

const PAGE_BYTES = 512 * 1024;

/** Trailer (RFC 9110 §6.5) with the number of "not found" entries, known only after the last record. */
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

async function* exportRecords({ cache: { memory }, clock }: Host, prefix: string): ExportedRecords {
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
