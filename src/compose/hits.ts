// Creates the count and the log of hits that are sent as prepared, for all interfaces.
import { type HitLine, createHitLog } from '../observe/hit-log.js';
import type { RequestSample } from '../observe/metrics.js';
import type { SharedDeps } from './shared-deps.js';

type CountedHit = HitLine & { family: RequestSample['family'] };

export interface Hits {
  /** `requestId`: only one that came with the request. */
  count: (hit: CountedHit, requestId: string | undefined) => void;
  /** Writes the buffered log lines. */
  flush: () => void;
}

export function makeHits({ metrics, activity, logger, now }: SharedDeps): Hits {
  const { log, flush } = createHitLog(logger, now);
  /** By interface, then by status. */
  const counts = new Map<CountedHit['family'], Map<number, number>>();
  metrics.registerFlush(() => {
    for (const [family, byStatus] of counts) {
      for (const [status, count] of byStatus) metrics.countRequest({ family, result: 'hit', status, count });
    }
    counts.clear();
  });
  return {
    count(hit, requestId) {
      const { family, handle, status } = hit;
      let byStatus = counts.get(family);
      if (byStatus === undefined) counts.set(family, (byStatus = new Map<number, number>()));
      byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
      activity.countHit(handle, family);
      log(hit, requestId);
    },
    flush,
  };
}
