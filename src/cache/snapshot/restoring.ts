// Restores records to memory from snapshots, seeds and imports, and reads records for exports.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Config } from '../../config/schema.js';
import { type ServerConfig, describeServers } from '../../config/upstream-servers.js';
import type { Context } from '../../context.js';
import { readFileLines } from '../../handle/file-lines.js';
import { type HandleRef, upperAscii } from '../../handle/handle.js';
import { shiftTimes } from '../entry.js';
import type { KeyedEntry, MemoryStore } from '../memory/memory-store.js';
import { makeUncheckedEntry } from '../policy.js';
import { formatRecordLine, parseRecordLine } from './record-line.js';
import { LAST_SNAPSHOT_MS, Snapshot, reasonOf } from './snapshot.js';

interface RestoringSettings extends Pick<Config, 'cache' | 'seed' | 'upstream'> {
  /** Handle servers. Without any, no record is revalidated. A snapshot of different servers is rejected. */
  servers: readonly ServerConfig[];
}

interface RestoringParts {
  memory: Pick<MemoryStore, 'moment' | 'readFrom' | 'restore'>;
  refOf: (text: string) => HandleRef;
  /** Whether a key has a server that can revalidate its record. */
  isServed: (key: string) => boolean;
  /** Returns `cache.staleIfError` for a key. It is read for each record, because a reload may change it. */
  staleIfErrorMs: (key: string) => number;
}

/** Line counts by result. */
interface RestoredLines {
  /** Stored in memory. */
  restored: number;
  /** Skipped, because memory already has a record or the handle has changed meanwhile. */
  kept: number;
  /** Skipped, because the record is too old even for stale-if-error. */
  expired: number;
  /** Skipped, because memory is full. */
  full: number;
  /** Rejected, because the line is not a record. */
  rejected: number;
}

const noLines = (): RestoredLines => ({ restored: 0, kept: 0, expired: 0, full: 0, rejected: 0 });

type Lines = Iterable<string> | AsyncIterable<string>;

export interface Restoring {
  /** Imports newline-delimited records. */
  importLines: (text: string) => Promise<RestoredLines>;
  /**
   * Yields newline-delimited records of a prefix in chunks; returns the number of handles cached as not
   * found.
   */
  exportRecords: (prefix: string) => AsyncGenerator<string, number>;
  /** Returns whether records can be served; false while a proxy without a Handle server reads its seed. */
  isReady: () => boolean;
  /** Settles once the snapshot and the seed have been read. */
  whenRestored: () => Promise<void>;
}

const PAGE_BYTES = 512 * 1024;

/** Characters parsed per event-loop turn, during which requests wait. */
const TURN_CHARS = 64 * 1024;
/** The cost of reading a line, also an empty one, in characters. */
const LINE_CHARS = 16;

/** Returns the maximum time that the last snapshot adds to a shutdown (ms). */
export const lastSnapshotMs = ({ file }: Config['cache']['snapshot']): number =>
  file === undefined ? 0 : LAST_SNAPSHOT_MS;

/** Restores the configured snapshot and seed in the background. */
export function createRestoring(
  settings: RestoringSettings,
  context: Context,
  { memory, refOf, isServed, staleIfErrorMs }: RestoringParts,
): Restoring {
  const { seed, servers } = settings;
  const { caseSensitive } = settings.upstream;
  const hasServer = servers.length > 0;
  const { clock } = context;
  const restore = ({ key, entry }: KeyedEntry, ticket: number): Exclude<keyof RestoredLines, 'rejected'> => {
    const [now, wallTime] = [clock.now(), clock.wall()];
    const kept = { now, wallTime, staleIfErrorMs: staleIfErrorMs(key), hasServer: isServed(key) };
    const unchecked = makeUncheckedEntry(entry, kept);
    return unchecked.deleteAt > now ? memory.restore(key, unchecked, ticket) : 'expired';
  };
  const restoreLines = async (lines: Lines, counts: RestoredLines, ticket: number): Promise<void> => {
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
  const { file, everyMs } = settings.cache.snapshot;
  const identity = JSON.stringify({ upstream: describeServers(servers), caseSensitive });
  const restoreOne = (kept: KeyedEntry, ticket: number): boolean => restore(kept, ticket) === 'restored';
  const snapshot =
    file === undefined
      ? undefined
      : new Snapshot({ file, everyMs, identity, memory, restore: restoreOne }, context);
  let isSeeded = seed.file === undefined;
  context.hooks.deleted.push((deleted) => snapshot?.recordDeletion(deleted));
  context.hooks.close.push(() => snapshot?.close());
  const ticket = memory.moment();
  const start = async (): Promise<void> => {
    // Snapshot records are newer than seed records, so they are restored first.
    await snapshot?.start();
    if (seed.file !== undefined)
      await readSeed(seed.file, (lines, counts) => restoreLines(lines, counts, ticket), context);
    isSeeded = true;
  };
  const restored = start();
  return {
    async importLines(text) {
      const counts = noLines();
      await restoreLines(linesIn(text), counts, memory.moment());
      context.metrics.countRestored('import', counts.restored);
      return counts;
    },
    exportRecords: (prefix) => exportRecords({ memory, clock }, prefix),
    isReady: () => hasServer || isSeeded,
    whenRestored: () => restored,
  };
}

/** Yields lines one by one: a list of four million empty lines would take more memory than the text. */
function* linesIn(text: string): Generator<string> {
  for (let at = 0; at <= text.length;) {
    const end = text.indexOf('\n', at);
    const next = end === -1 ? text.length : end;
    yield text.slice(at, next);
    at = next + 1;
  }
}

async function* exportRecords(
  { memory, clock }: { memory: Pick<MemoryStore, 'readFrom'>; clock: Context['clock'] },
  prefix: string,
): ReturnType<Restoring['exportRecords']> {
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

/** Restores the seed file and logs the result. Never rejects. */
async function readSeed(
  file: string,
  restoreLines: (lines: Lines, counts: RestoredLines) => Promise<void>,
  { log, metrics, clock }: Context,
): Promise<void> {
  const startedAt = clock.monotonic();
  const counts = noLines();
  let reason: string | undefined;
  try {
    await restoreLines(readFileLines(file), counts);
  } catch (error) {
    reason = reasonOf(error);
  }
  const { restored, kept, expired, full, rejected } = counts;
  const records = restored + kept + expired + full;
  metrics.countRestored('seed', restored);
  if (rejected > 0) reason ??= 'lines that are no records';
  if (reason !== undefined) log.warn({ file, reason, lines: rejected }, 'seed rejected');
  const ms = Math.round(clock.monotonic() - startedAt);
  if (records > 0) log.info({ file, records, restored, ms }, 'seed loaded');
}

/** Returns a predicate that matches the handles of a prefix, and the record of the prefix itself. */
function isUnder(prefix: string): (key: string) => boolean {
  const folded = upperAscii(prefix);
  return (key) => key.startsWith(`${folded}/`) || key === `0.NA/${folded}`;
}
