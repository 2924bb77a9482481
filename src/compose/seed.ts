// Reads the seed: a file of records that are there from the start.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ImportCounts } from '../admin/operations.js';
import { readFileLines } from '../handle/file-lines.js';
import type { SharedDeps } from './shared-deps.js';

/** As many take about a millisecond; requests that arrive meanwhile wait for that. */
const LINES_AT_ONCE = 100;

export async function startSeed(
  { config, logger, metrics }: Pick<SharedDeps, 'config' | 'logger' | 'metrics'>,
  restoreLines: (lines: readonly string[]) => ImportCounts,
): Promise<void> {
  const file = config.seed.file ?? '';
  const startedAt = performance.now();
  const total: ImportCounts = { restored: 0, kept: 0, refused: 0 };
  let reason: string | undefined;
  try {
    for await (const lines of batchesOf(readFileLines(file))) {
      const counts = restoreLines(lines);
      for (const name of ['restored', 'kept', 'refused'] as const) total[name] += counts[name];
      await nextTurn();
    }
  } catch (error) {
    reason = error instanceof Error ? error.message : String(error);
  }
  metrics.countRestored('seed', total.restored);
  if (total.refused > 0) reason ??= 'lines that are no records';
  if (reason !== undefined) logger.warn({ file, reason, lines: total.refused }, 'seed refused');
  const ms = Math.round(performance.now() - startedAt);
  if (total.restored + total.kept > 0)
    logger.info({ file, records: total.restored + total.kept, restored: total.restored, ms }, 'seed loaded');
}

async function* batchesOf(lines: AsyncIterable<string>): AsyncGenerator<string[]> {
  let batch: string[] = [];
  for await (const line of lines) {
    if (batch.push(line) < LINES_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}
