// Counts, measures and logs hits that are sent as prepared, for all interfaces.
import { type HitLine, createHitLog } from './hit-log.js';
import type { LabelValue } from './label-values.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';

type Family = LabelValue<'family'>;
type CountedHit = HitLine & { family: Family };

export interface Hits {
  /** Start time for a request, for `count`; undefined where a hit is not measured. */
  startTimer: () => number | undefined;
  /** `requestId`: only one that came with the request. */
  count: (hit: CountedHit, requestId: string | undefined, startedAt: number | undefined) => void;
  /** Writes the buffered log lines. */
  flush: () => void;
}

interface HitsDeps {
  metrics: Pick<Metrics, 'registerFlush' | 'countHits' | 'observeHits'>;
  log: Logger;
  clock: { now: () => number; monotonic: () => number };
}

/** Hits are measured exactly for the first 1,000 per second, then 1 in 16, weighted 16. */
const MAX_EXACT = 1000;
const SAMPLE = 16;
const SECOND_MS = 1000;

/** A reading of the clock costs 165 ns, a hundredth of a hit. */
export function createHits({ metrics, log: logger, clock: { now, monotonic } }: HitsDeps): Hits {
  const { log, flush } = createHitLog(logger, now);
  const families = new Map<Family, FamilyHits>();
  let secondStartedAt = monotonic();
  let hitsOfSecond = 0;
  metrics.registerFlush(() => {
    for (const [family, { byStatus }] of families) {
      for (const [status, count] of byStatus) metrics.countHits({ family, status, count });
      byStatus.clear();
    }
  });

  /** @returns the duration */
  function measure({ family, handle }: CountedHit, startedAt: number, weight: number): number {
    const endedAt = monotonic();
    if (endedAt - secondStartedAt >= SECOND_MS) {
      secondStartedAt = endedAt;
      hitsOfSecond = 0;
    }
    metrics.observeHits({ family, handle, ms: endedAt - startedAt, weight });
    return endedAt - startedAt;
  }

  return {
    startTimer: () => (hitsOfSecond < MAX_EXACT || hitsOfSecond % SAMPLE === 0 ? monotonic() : undefined),
    count(hit, requestId, startedAt) {
      const { family, status } = hit;
      let hits = families.get(family);
      if (hits === undefined) families.set(family, (hits = { byStatus: new Map(), unmeasured: 0 }));
      hits.byStatus.set(status, (hits.byStatus.get(status) ?? 0) + 1);
      hits.unmeasured++;
      hitsOfSecond++;
      let ms: number | undefined;
      if (startedAt !== undefined) {
        ms = measure(hit, startedAt, hits.unmeasured);
        hits.unmeasured = 0;
      }
      log(hit, requestId, ms);
    },
    flush,
  };
}

interface FamilyHits {
  byStatus: Map<number, number>;
  /** Hits since the last one that was measured, whose duration they take. */
  unmeasured: number;
}
