// Reads the seed: a file of records that are there from the start.
import type { Context } from '../../context.js';
import { readFileLines } from '../../handle/file-lines.js';

/** What became of lines of records. */
export interface RestoredLines {
  /** In memory now. */
  restored: number;
  /** Not needed: memory has a record of its own, or is full, or the record is too old to stand in. */
  kept: number;
  /** No records. */
  refused: number;
}

export type Lines = Iterable<string> | AsyncIterable<string>;

/** Never rejects: the result is in the log. */
export async function readSeed(
  file: string,
  restoreLines: (lines: Lines, counts: RestoredLines) => Promise<void>,
  { log, metrics, clock }: Context,
): Promise<void> {
  const startedAt = clock.monotonic();
  const total: RestoredLines = { restored: 0, kept: 0, refused: 0 };
  let reason: string | undefined;
  try {
    await restoreLines(readFileLines(file), total);
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error);
  }
  metrics.countRestored('seed', total.restored);
  if (total.refused > 0) reason ??= 'lines that are no records';
  if (reason !== undefined) log.warn({ file, reason, lines: total.refused }, 'seed refused');
  const ms = Math.round(clock.monotonic() - startedAt);
  if (total.restored + total.kept > 0)
    log.info({ file, records: total.restored + total.kept, restored: total.restored, ms }, 'seed loaded');
}
