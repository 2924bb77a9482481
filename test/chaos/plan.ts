// Plans the faults in four independent tracks, which may overlap.
import { FAULT_KINDS, type FaultKind } from '../support/demo-control.js';
import type { Random } from './random.js';

const REDIS_FAULTS = ['freeze', 'kill', 'restart', 'flush', 'dump'] as const;

/** `kill` stays away for a while, `restart` does not; both lose all data, and `dump` loses only the newest. */
export type RedisFault = (typeof REDIS_FAULTS)[number];

export type Event = { atMs: number; forMs: number } & (
  | { what: 'upstream'; fault: FaultKind | 'slow' }
  | { what: 'redis'; how: RedisFault }
  | { what: 'webhook' }
  | { what: 'proxy'; how: 'freeze' | 'kill'; at: number }
);

const UPSTREAM_FAULTS = [...FAULT_KINDS, 'slow'] as const;

/** Twice the lease. */
export const LONGEST_FREEZE_MS = 5000;

/** Time without faults at the start and the end, for startup and recovery. */
const CALM_MS = 3000;

export function makePlan(random: Random, totalMs: number, proxies: number): Event[] {
  const track = (gapMs: [number, number], lastsMs: [number, number], make: () => object): Event[] => {
    const events: Event[] = [];
    let atMs = CALM_MS + random.between(0, gapMs[0]);
    for (;;) {
      const forMs = random.between(...lastsMs);
      if (atMs + forMs > totalMs - CALM_MS) return events;
      events.push({ atMs, forMs, ...make() } as Event);
      atMs += forMs + random.between(...gapMs);
    }
  };
  return [
    ...track([500, 3000], [500, 4000], () => ({ what: 'upstream', fault: random.pick(UPSTREAM_FAULTS) })),
    ...track([4000, 9000], [500, 4000], () => ({
      what: 'redis',
      how: random.pick(REDIS_FAULTS),
    })),
    ...track([2000, 8000], [500, 4000], () => ({ what: 'webhook' })),
    // A freeze may outlast the lease of the instance, so that writes through the others are acknowledged.
    ...track([3000, 9000], [200, LONGEST_FREEZE_MS], () => ({
      what: 'proxy',
      how: random.pick(['freeze', 'kill'] as const),
      at: Math.floor(random.next() * proxies),
    })),
  ].sort((one, other) => one.atMs - other.atMs);
}
