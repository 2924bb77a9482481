// Counts of the pages of prefixes: months, and clocks that are set.
import { describe, expect, it } from 'vitest';
import { createPageCounts, figuresOf } from '../../src/plugins/prefix-page/counts.js';
import { CLOCK_NOW, createManualClock } from '../support/manual-clock.js';
import { partial } from '../support/partial.js';

const DAY_MS = 86_400_000;
const START = '2026-11-28T12:00:00.000Z';

function start(at = START, clock = createManualClock()) {
  clock.setBy(Date.parse(at) - CLOCK_NOW);
  const counts = createPageCounts(['21.T1'], partial({ clock, cache: { commands: undefined } }));
  const figures = async () => {
    await counts.publish();
    return counts.read('21.T1');
  };
  return { clock, counts, figures };
}

describe('counts', () => {
  it('are those of listed prefixes, by kind', async () => {
    const { counts, figures } = start();
    counts.add('21.T1', 'found');
    await counts.publish();
    counts.add('21.T1', 'unknown');
    counts.add('21.T1', 'failed');
    counts.add('21.T2', 'found');
    expect(await figures()).toMatchObject({ resolutions: 2, found: 1, failed: 1 });
  });

  it('of the next month start at zero, and since its start', async () => {
    const { clock, counts, figures } = start();
    expect(await figures()).toMatchObject({ countedSince: START });
    counts.add('21.T1', 'found');
    await clock.pass(3 * DAY_MS);
    expect(await figures()).toMatchObject({
      ...{ month: '2026-12', countedSince: '2026-12-01T00:00:00.000Z', resolutions: 0 },
    });
  });

  it('survive a clock that is set within the month', async () => {
    const { clock, counts, figures } = start();
    for (const days of [-2, 3, -1]) {
      counts.add('21.T1', 'found');
      clock.setBy(days * DAY_MS);
      await counts.publish();
    }
    expect(await figures()).toMatchObject({
      ...{ month: '2026-11', countedSince: START, resolutions: 3 },
    });
  });

  it('say since when, although the machine stands still during the start', async () => {
    const clock = createManualClock();
    let standstillMs = 0;
    const { figures } = start(START, { ...clock, monotonic: () => clock.monotonic() + (standstillMs += 5) });
    expect(await figures()).toMatchObject({ countedSince: START });
  });

  it('say since when, although the clock was wrong at the start', async () => {
    const { clock, figures } = start('1970-01-01T00:00:00.000Z');
    await clock.pass(60_000);
    clock.setBy(Date.parse(START) - 60_000);
    expect(await figures()).toMatchObject({ month: '2026-11', countedSince: '2026-11-28T11:59:00.000Z' });
  });
});

describe('fractions', () => {
  it('are never rounded up to all', () => {
    const figures = figuresOf({ found: 999_999, failed: 1, current: 30_000, outdated: 1 });
    expect(figures).toMatchObject({ availability: 0.9999, fresh: 0.9999, countedSince: null });
  });
});
