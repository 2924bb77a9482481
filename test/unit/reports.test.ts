// The schedule on which counts are added to the reports, on a manual clock and with a store that fails.
import { describe, expect, it } from 'vitest';
import type { CountedReads } from '../../src/plugins/reports/redis-store.js';
import { foldedRef } from '../../src/handle/handle.js';
import { createReports, ReadCounter } from '../../src/plugins/reports/reports.js';
import { testContext } from '../support/context.js';
import { gate } from '../support/gate.js';
import { createManualClock } from '../support/manual-clock.js';

const MINUTE_MS = 60_000;

function start() {
  const clock = createManualClock();
  const counter = new ReadCounter(clock.now, 10, foldedRef);
  const context = testContext({ clock });
  const state = { isUp: true, saved: 0, disk: Promise.resolve() };
  /** Additions in the order of arrival: sequence, prefix and number of reads. */
  const added: [sequence: number, prefix: string, count: number | undefined][] = [];
  const reports = createReports(context, counter, {
    add({ prefix, totals }: CountedReads, sequence) {
      added.push([sequence, prefix, totals['record']]);
      return Promise.resolve(state.isUp);
    },
    save() {
      state.saved++;
      return state.disk;
    },
    read: () => Promise.resolve(undefined),
  });
  return {
    ...{ added, clock, counter, context, reports, state },
    count: (text: string): void => {
      counter.countRead({ handle: foldedRef(text), interface: 'record', exists: true });
    },
  };
}

describe('counts of an instance', () => {
  it('are added each minute and at the end', async () => {
    const { added, clock, count, reports } = start();
    count('A/1');
    count('A/2');
    await clock.pass(MINUTE_MS);
    expect(added).toEqual([[0, 'A', 2]]);
    await clock.pass(MINUTE_MS);
    count('B/1');
    await reports.close();
    expect(added.slice(1)).toEqual([[1, 'B', 1]]);
    await clock.pass(10 * MINUTE_MS);
    expect(added).toHaveLength(2);
  });

  it('are repeated with the same sequence number, before later counts, until the store has them', async () => {
    const { added, clock, count, state } = start();
    state.isUp = false;
    count('A/1');
    count('B/1');
    await clock.pass(MINUTE_MS);
    count('A/2');
    await clock.pass(MINUTE_MS);
    expect(added.splice(0)).toEqual([
      [0, 'A', 1],
      [0, 'A', 1],
    ]);
    state.isUp = true;
    await clock.pass(MINUTE_MS);
    expect(added).toEqual([
      [0, 'A', 1],
      [1, 'B', 1],
      [2, 'A', 1],
    ]);
  });

  it('are saved while an addition fails, because the store may hold earlier ones', async () => {
    const { clock, count, state } = start();
    state.isUp = false;
    count('A/1');
    for (const times of [1, 2]) {
      await clock.pass(MINUTE_MS);
      expect(state.saved).toBe(times);
    }
  });

  it('let neither a report nor the stop wait for a disk that does not respond, and are saved once afterwards', async () => {
    const { clock, context, count, reports, state } = start();
    const held = gate();
    state.disk = held.opened;
    await clock.pass(MINUTE_MS);
    expect(state.saved).toBe(1);
    const failures = Array.from({ length: 5 }, () =>
      reports.read({ prefix: 'A' }).catch((error: unknown) => error),
    );
    count('A/1');
    const closed = reports.close();
    await clock.pass(5000);
    for (const failure of await Promise.all(failures))
      expect(failure).toMatchObject({ code: 'REPORT_UNAVAILABLE' });
    await closed;
    expect(context.lines.filter(({ msg }) => msg === 'reports not stored')).toHaveLength(1);
    held.open();
    await expect.poll(() => state.saved).toBe(2);
    await clock.pass(0);
    expect(state.saved).toBe(2);
  });

  it('make the report unavailable while the store fails, and cause a warning when they are lost at the end', async () => {
    const { count, context, reports, state } = start();
    state.isUp = false;
    count('A/1');
    await expect(reports.read({ prefix: 'A' })).rejects.toMatchObject({ code: 'REPORT_UNAVAILABLE' });
    await reports.close();
    expect(context.lines).toMatchObject([{ level: 'warn' }]);
  });

  it('include prepared hits once a second, which releases their responses', async () => {
    const { clock, counter } = start();
    const family = 'record' as const;
    const counted = { family, method: 'GET', handle: 'A/1', status: 200, exists: true, repeats: 0 };
    counter.addHit(counted);
    expect(counted.repeats).toBe(1);
    await clock.pass(1000);
    expect(counted.repeats).toBe(0);
  });
});
