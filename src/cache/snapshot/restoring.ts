// Puts records into memory that were not loaded: from the snapshot, the seed and imports; and reads them for exports.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from '../../context.js';
import { upperAscii } from '../../handle/handle.js';
import type { Deleted } from '../apply-message.js';
import type { KeyedEntry, MemoryStore } from '../memory/memory-store.js';
import { makeUncheckedEntry } from '../policy.js';
import { formatRecordLine, parseRecordLine } from './record-line.js';
import { type Lines, type RestoredLines, readSeed } from './seed.js';
import { Snapshot, type SnapshotEvents } from './snapshot.js';

export interface RestoringOptions {
  /** `cache.snapshot`. */
  snapshot: { file?: string | undefined; everyMs: number };
  /** `seed`. */
  seed: { file?: string | undefined };
  /** Names the upstream: the snapshot of another one is rejected. */
  identity: string;
  /** Whether there is a Handle server that could check a record. */
  hasServer: boolean;
  caseSensitive: boolean;
  /** `cache.staleIfError` for a key, read for each record: a reload may change it. */
  staleIfErrorMs: (key: string) => number;
  memory: Pick<MemoryStore, 'moment' | 'readFrom' | 'restore'>;
}

export interface Restoring {
  recordDeletion: (deleted: Deleted) => void;
  /** Newline-delimited records. */
  importLines: (text: string) => Promise<RestoredLines>;
  /** Parts of newline-delimited records: those of a prefix. */
  exportRecords: (prefix: string) => AsyncGenerator<string>;
  /** False while a seed is read that is all there is to serve. */
  isReady: () => boolean;
  close: () => Promise<void>;
}

const PAGE_BYTES = 512 * 1024;

/** As many take about a millisecond; requests that arrive meanwhile wait for that. */
const TURN_CHARS = 64 * 1024;

/** Maximum time for the last snapshot, after the last response. */
const LAST_SNAPSHOT_MS = 15_000;

/** How much longer the end takes because of the last snapshot. */
export const lastSnapshotMs = ({ file }: RestoringOptions['snapshot']): number =>
  file === undefined ? 0 : LAST_SNAPSHOT_MS;

/** Restores in the background what the configuration names. */
export function createRestoring(options: RestoringOptions, context: Context): Restoring {
  const { hasServer, caseSensitive, memory, seed } = options;
  const { now } = context.clock;
  const restore = ({ key, entry }: KeyedEntry, ticket: number): boolean => {
    const staleIfErrorMs = options.staleIfErrorMs(key);
    const unchecked = makeUncheckedEntry(entry, { now: now(), staleIfErrorMs, hasServer });
    return unchecked.deleteAt > now() && memory.restore(key, unchecked, ticket);
  };
  const restoreLines = async (lines: Lines, counts: RestoredLines, ticket: number): Promise<void> => {
    let chars = 0;
    for await (const line of lines) {
      const parsed = line === '' ? undefined : parseRecordLine(line, caseSensitive);
      if (parsed !== undefined) counts[restore(parsed, ticket) ? 'restored' : 'kept']++;
      else if (line !== '') counts.refused++;
      chars += line.length;
      if (chars < TURN_CHARS) continue;
      chars = 0;
      await nextTurn();
    }
  };
  const snapshot = createSnapshot({ ...options, restore }, context);
  let isSeeded = seed.file === undefined;
  const ticket = memory.moment();
  const start = async (): Promise<void> => {
    // The records of the snapshot are newer than those of the seed.
    await snapshot?.start();
    if (seed.file !== undefined)
      await readSeed(seed.file, (lines, counts) => restoreLines(lines, counts, ticket), context);
    isSeeded = true;
  };
  void start();
  return {
    recordDeletion: (deleted) => snapshot?.recordDeletion(deleted),
    async importLines(text) {
      const counts = { restored: 0, kept: 0, refused: 0 };
      await restoreLines(text.split('\n'), counts, memory.moment());
      context.metrics.countRestored('import', counts.restored);
      return counts;
    },
    async *exportRecords(prefix) {
      const isWanted = isUnder(prefix);
      for (let from: number | undefined = 0; from !== undefined;) {
        const { entries, next } = memory.readFrom(from, PAGE_BYTES);
        const lines = entries.map((kept) => (isWanted(kept.key) ? formatRecordLine(kept) : undefined));
        const text = lines.join('');
        if (text !== '') yield text;
        from = next;
        await nextTurn();
      }
    },
    isReady: () => hasServer || isSeeded,
    close: async () => snapshot?.close(),
  };
}

/** Undefined where none is configured. */
function createSnapshot(
  options: RestoringOptions & { restore: (kept: KeyedEntry, ticket: number) => boolean },
  context: Context,
): Snapshot | undefined {
  const { snapshot, identity, memory, restore } = options;
  const { file, everyMs } = snapshot;
  if (file === undefined) return undefined;
  const { clock } = context;
  const events = reportSnapshot(file, context);
  return new Snapshot({
    file,
    everyMs,
    lastMs: LAST_SNAPSHOT_MS,
    identity,
    memory,
    restore,
    clock,
    ...events,
  });
}

function reportSnapshot(file: string, { log, metrics, clock }: Context): SnapshotEvents {
  let isFailing = false;
  return {
    onWritten(written) {
      isFailing = false;
      metrics.setSnapshotWritten(clock.now());
      log.info({ file, ...written }, 'snapshot written');
    },
    onNotWritten(error) {
      // Once for a full disk, not for each interval or write.
      if (!isFailing) log.warn({ file, reason: reasonOf(error) }, 'snapshot not written');
      isFailing = true;
    },
    onLoaded(loaded) {
      metrics.countRestored('snapshot', loaded.restored);
      log.info({ file, ...loaded }, 'snapshot loaded');
    },
    onRefused(refused) {
      const reason = 'error' in refused ? reasonOf(refused.error) : refused.reasons.join(', ');
      const blocks = 'error' in refused ? undefined : refused.blocks;
      log.warn({ file, reason, blocks }, 'snapshot refused');
    },
  };
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The handles of a prefix, and the record of the prefix itself. */
function isUnder(prefix: string): (key: string) => boolean {
  const folded = upperAscii(prefix);
  return (key) => key.startsWith(`${folded}/`) || key === `0.NA/${folded}`;
}
