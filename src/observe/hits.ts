// Counts, times and logs prepared hits on all interfaces.
import type { IsLogged, Logger } from './logger.js';
import type { LabelValue } from './metric-list.js';
import type { Metrics } from './metrics.js';
import { type LoggedHit, createRequestLines } from './request-lines.js';

type Family = LabelValue<'interface'>;

/** A hit for log and metrics. All hits of a prepared response share one object: copy it to keep it. */
export interface PreparedHit extends LoggedHit {
  exists: boolean;
  /** Hits that one plugin, the reports, has not counted yet; any other leaves it as it is, and counts each call. */
  repeats: number;
}

export type Hits = ReturnType<typeof createHits>;

interface HitsDeps {
  metrics: Metrics;
  log: Logger;
  isLogged: IsLogged;
  hooks: { sentPrepared: readonly ((hit: PreparedHit) => void)[] };
  clock: { wall: () => number; monotonic: () => number };
}

/** Maximum hits per second that are all timed; above it, 1 in 16 stands for all: clocks are costly. */
const MAX_EXACT = 1000;
const SAMPLE = 16;
const SECOND_MS = 1000;

export function createHits({ metrics, log: logger, isLogged, hooks, clock: { wall, monotonic } }: HitsDeps) {
  const { sentPrepared } = hooks;
  const { log, logRequest, flush } = createRequestLines(logger, wall);
  const families = new Map<Family, FamilyHits>();
  let secondStartedAt = monotonic();
  let hitsOfSecond = 0;

  function measure({ family, handle }: PreparedHit, startedAt: number, weight: number): number {
    const endedAt = monotonic();
    if (endedAt - secondStartedAt >= SECOND_MS) {
      secondStartedAt = endedAt;
      hitsOfSecond = 0;
    }
    metrics.observeHits({ interface: family, handle, ms: endedAt - startedAt, weight });
    return endedAt - startedAt;
  }

  return {
    /** Returns a start time to pass to `count`; undefined if this hit is not sampled. */
    startTimer: (): number | undefined =>
      hitsOfSecond < MAX_EXACT || hitsOfSecond % SAMPLE === 0 ? monotonic() : undefined,
    /** Counts a hit. `requestId` is set only if the request had one. */
    count(hit: PreparedHit, requestId: string | undefined, startedAt: number | undefined): void {
      const { family, status } = hit;
      let hits = families.get(family);
      if (hits === undefined) families.set(family, (hits = { byStatus: new Map(), unmeasured: 0 }));
      let count = hits.byStatus.get(status);
      if (count === undefined) hits.byStatus.set(status, (count = metrics.hitsOf(family, status)));
      count.value++;
      hits.unmeasured++;
      hitsOfSecond++;
      for (const each of sentPrepared) each(hit);
      let ms: number | undefined;
      if (startedAt !== undefined) {
        ms = measure(hit, startedAt, hits.unmeasured);
        hits.unmeasured = 0;
      }
      if (isLogged('hit')) log(hit, requestId, ms);
    },
    logRequest,
    flush,
  };
}

interface FamilyHits {
  /** The counts in the metrics, because it takes long to find them by their labels. */
  byStatus: Map<number, { value: number }>;
  /** Hits since the last timed one; the next timed hit's duration counts for them too. */
  unmeasured: number;
}
