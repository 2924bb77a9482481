// Creates the snapshot of the memory tier, and reports it to log and metrics.
import type { Cache } from '../cache/cache.js';
import { systemClock } from '../cache/clock.js';
import { Snapshot, type SnapshotDeps, type SnapshotEvents } from '../cache/snapshot/snapshot.js';
import type { Config } from '../config/schema.js';
import { describeServers, upstreamServers } from '../config/upstream-servers.js';
import type { SharedDeps } from './shared-deps.js';

/** Maximum time for the last snapshot, after the last response. */
const LAST_SNAPSHOT_MS = 15_000;

/** 0 without a snapshot. */
export const lastSnapshotMs = ({ cache }: Pick<Config, 'cache'>): number =>
  cache.snapshot.file === undefined ? 0 : LAST_SNAPSHOT_MS;

/** Undefined where none is configured. */
export function makeSnapshot(
  shared: SharedDeps,
  { memory, restore }: Pick<Cache, 'memory'> & Pick<SnapshotDeps, 'restore'>,
): Snapshot | undefined {
  const { config, now } = shared;
  const { file, everyMs } = config.cache.snapshot;
  if (file === undefined) return undefined;
  const { caseSensitive } = config.upstream;
  return new Snapshot({
    file,
    everyMs,
    lastMs: LAST_SNAPSHOT_MS,
    identity: JSON.stringify({ upstream: describeServers(upstreamServers(config)), caseSensitive }),
    memory,
    restore,
    clock: { ...systemClock, now },
    ...makeEvents(shared, file),
  });
}

function makeEvents({ logger, metrics, now }: SharedDeps, file: string): SnapshotEvents {
  let isFailing = false;
  return {
    onWritten(written) {
      isFailing = false;
      metrics.setSnapshotWritten(now());
      logger.info({ file, ...written }, 'snapshot written');
    },
    onNotWritten(error) {
      // Once for a full disk, not for each interval or write.
      if (!isFailing) logger.warn({ file, reason: reasonOf(error) }, 'snapshot not written');
      isFailing = true;
    },
    onLoaded(loaded) {
      metrics.countRestored('snapshot', loaded.restored);
      logger.info({ file, ...loaded }, 'snapshot loaded');
    },
    onRefused(refused) {
      const reason = 'error' in refused ? reasonOf(refused.error) : refused.reasons.join(', ');
      const blocks = 'error' in refused ? undefined : refused.blocks;
      logger.warn({ file, reason, blocks }, 'snapshot refused');
    },
  };
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
