// Puts records into memory that were not loaded: from the snapshot, the seed and imports; and reads them for exports.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ImportCounts, Operations } from '../admin/operations.js';
import type { Cache } from '../cache/cache.js';
import type { KeyedEntry } from '../cache/memory/memory-store.js';
import { makeUncheckedEntry } from '../cache/policy.js';
import { formatRecordLine, parseRecordLine } from '../cache/snapshot/record-line.js';
import { upperAscii } from '../handle/handle.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { staleMsOf } from './resolver.js';
import { startSeed } from './seed.js';
import type { SharedDeps } from './shared-deps.js';
import { makeSnapshot } from './snapshot.js';

export interface Restoring {
  recordDeletion: NonNullable<ReturnType<typeof makeSnapshot>>['recordDeletion'];
  importLines: Operations['importLines'];
  exportRecords: Operations['exportRecords'];
  /** False while a seed is read that is all there is to serve. */
  isReady: () => boolean;
  close: () => Promise<void>;
}

const PAGE_BYTES = 512 * 1024;

/** Restores what the configuration names, in the background. */
export function makeRestoring(shared: SharedDeps, { memory }: Pick<Cache, 'memory'>): Restoring {
  const { config, now, metrics } = shared;
  const hasServer = upstreamServers(config).length > 0;
  const { caseSensitive } = config.upstream;
  const restore = ({ key, entry }: KeyedEntry, ticket: number): boolean => {
    const staleIfErrorMs = staleMsOf(shared.config.cache.staleIfError, key);
    const unchecked = makeUncheckedEntry(entry, { now: now(), staleIfErrorMs, hasServer });
    return unchecked.deleteAt > now() && memory.restore(key, unchecked, ticket);
  };
  const restoreLines = (lines: Iterable<string>, ticket: number): ImportCounts => {
    const counts = { restored: 0, kept: 0, refused: 0 };
    for (const line of lines) {
      const parsed = line === '' ? undefined : parseRecordLine(line, caseSensitive);
      if (parsed !== undefined) counts[restore(parsed, ticket) ? 'restored' : 'kept']++;
      else if (line !== '') counts.refused++;
    }
    return counts;
  };
  const snapshot = makeSnapshot(shared, { memory, restore });
  let isSeeded = config.seed.file === undefined;
  const ticket = memory.moment();
  const start = async (): Promise<void> => {
    // The records of the snapshot are newer than those of the seed.
    await snapshot?.start();
    if (!isSeeded) await startSeed(shared, (lines) => restoreLines(lines, ticket));
    isSeeded = true;
  };
  void start();
  return {
    recordDeletion: (deleted) => snapshot?.recordDeletion(deleted),
    importLines(text) {
      const counts = restoreLines(text.split('\n'), memory.moment());
      metrics.countRestored('import', counts.restored);
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

/** The handles of a prefix, and the record of the prefix itself. */
function isUnder(prefix: string): (key: string) => boolean {
  const folded = upperAscii(prefix);
  return (key) => key.startsWith(`${folded}/`) || key === `0.NA/${folded}`;
}
