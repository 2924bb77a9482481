// The order of reads in one walk over a mirrored prefix, with given times and entries.
import type { Entry } from '../../src/cache/entry.js';
import { partial } from '../support/partial.js';
import { fc, test } from '../support/property.js';
import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../src/clock.js';
import { type Step, type WalkPlan, Walk } from '../../src/plugins/mirror/prefix-mirror.js';

const NOW = 1_000_000;

const planOf = (plan: Partial<WalkPlan>): WalkPlan => ({
  names: new Set(),
  previous: new Set(),
  listedAt: NOW,
  durationMs: 0,
  minAgeMs: 1000,
  entryOf: () => undefined,
  ...plan,
});

const namesOf = (count: number): Set<string> =>
  new Set(Array.from({ length: count }, (_, at) => `21.T1/${at}`));

/** Returns the steps until the end or the first wait, without rests. `fails` decides which reads fail. */
function stepsOf(walk: Walk, fails: (key: string) => boolean = () => false): Step[] {
  const steps: Step[] = [];
  for (let step = walk.next(NOW, 0); step.kind !== 'end'; step = walk.next(NOW, 0)) {
    if (step.kind === 'rest') continue;
    steps.push(step);
    if (step.kind === 'visit' && fails(step.key)) walk.retryLater(step);
    if (step.kind === 'wait') break;
  }
  return steps;
}

const keysOf = (steps: readonly Step[]): string[] =>
  steps.map((step) => (step.kind === 'visit' ? step.key : step.kind));

const entry = fc.option(
  fc.record({
    kind: fc.constantFrom('found', 'not-found', 'empty'),
    requestedAt: fc.integer({ min: NOW - 2000, max: NOW }),
  }),
  { nil: undefined },
);

describe('prefix walk', () => {
  test.prop([fc.uniqueArray(fc.string()), fc.array(entry), fc.uniqueArray(fc.string())])(
    'reads once each handle that left the list, then each listed handle that may be too old',
    (listed, entries, previous) => {
      const known = new Map(listed.map((name, at) => [name, entries[at]]));
      const entryOf = (key: string) => known.get(key) as Entry | undefined;
      const walk = new Walk(planOf({ names: new Set(listed), previous: new Set(previous), entryOf }));
      const isCurrent = (name: string): boolean => {
        const found = known.get(name);
        return found?.kind === 'found' && found.requestedAt > NOW - 1000;
      };
      expect(keysOf(stepsOf(walk))).toEqual([
        ...previous.filter((name) => !known.has(name)),
        ...listed.filter((name) => !isCurrent(name)),
      ]);
      expect(walk.counts.checked).toBe(listed.length);
    },
  );

  test.prop([fc.integer({ min: 1, max: 50 }), fc.func(fc.boolean())])(
    'reads a failing handle three times at most, and counts it as failed',
    (count, isBroken) => {
      const names = namesOf(count);
      const walk = new Walk(planOf({ names }));
      const keys = keysOf(stepsOf(walk, isBroken));
      const broken = [...names].filter((name) => isBroken(name));
      expect(keys).toHaveLength(count + 2 * broken.length);
      expect(walk.counts.failed).toBe(broken.length);
    },
  );

  it('reads a handle that left the list even if its entry is new', () => {
    const entryOf = () => partial<Entry>({ kind: 'found', requestedAt: NOW - 1 });
    const walk = new Walk(planOf({ previous: new Set(['21.T1/GONE']), entryOf }));
    expect(walk.next(NOW, 0)).toEqual({ kind: 'visit', key: '21.T1/GONE', newerThan: NOW - 1, failures: 0 });
  });

  it('waits while it is ahead of its schedule', () => {
    const walk = new Walk(planOf({ names: namesOf(10), durationMs: 10_000 }));
    expect(walk.next(NOW, 0).kind).toBe('visit');
    expect(walk.next(NOW, 0)).toEqual({ kind: 'wait', ms: 1000 });
    expect(walk.next(NOW, 1000).kind).toBe('visit');
  });

  it('rests after 200 handles without a read', () => {
    const entryOf = () => partial<Entry>({ kind: 'found', requestedAt: NOW });
    const walk = new Walk(planOf({ names: namesOf(300), entryOf }));
    expect(walk.next(NOW, 0)).toEqual({ kind: 'rest' });
    expect(walk.counts.checked).toBe(200);
    expect(walk.next(NOW, 0)).toEqual({ kind: 'end' });
  });

  it('pauses after failures for a second, doubled up to a minute', () => {
    expect([1, 2, 6, 7, 1000].map(backoffMs)).toEqual([1000, 2000, 32_000, 60_000, 60_000]);
  });
});
