// The counts of one instance: exact below the bound, close above it, bounded for any names.
import { describe, expect, it } from 'vitest';
import { foldedRef } from '../../src/handle/handle.js';
import { ReadCounter } from '../../src/plugins/reports/reports.js';
import { isWhole } from '../support/thorough.js';

const MAX_PREFIXES = 10;
const MAX_NAMES = 1000;
const READS = isWhole ? 1_000_000 : 100_000;

function start() {
  let time = Date.parse('2026-11-30T23:59:59Z');
  const counter = new ReadCounter(() => time, MAX_PREFIXES, foldedRef);
  return {
    counter,
    take: () => counter.take().map(({ row, ...taken }) => ({ ...taken, ...row.counts() })),
    read: (text: string, { exists = true, times = 1 } = {}): void => {
      counter.countRead({ handle: foldedRef(text), interface: 'record', exists }, times);
    },
    pass: (ms: number) => (time += ms),
  };
}

/** Pseudo-random numbers below 1 (a linear congruential generator). */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ;) {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    yield state / 2 ** 32;
  }
}

describe('counted reads', () => {
  it('belong to the month of the wall clock, also after it was set back', () => {
    const { read, take, pass } = start();
    pass(86_400_000);
    read('21.T1/ahead');
    pass(-86_400_000);
    read('21.T1/corrected');
    expect(take().map(({ month }) => month)).toEqual(['2026-12', '2026-11']);
  });

  it('differ from the exact counts by at most 2 % for frequent handles among far more names than are kept', () => {
    const { read, take } = start();
    const exact = new Map<string, number>();
    const random = numbers(1);
    for (let at = 0; at < READS; at++) {
      const name = random.next().value < 0.5 ? `21.T1/TOP-${at % 5}` : `21.T1/RARE-${at}`;
      if (name.includes('TOP')) exact.set(name, (exact.get(name) ?? 0) + 1);
      read(name);
    }
    const [row] = take();
    expect(row?.totals).toEqual({ record: READS });
    const { names, maxError } = row?.handles ?? { names: [], maxError: 0 };
    expect(maxError).toBeGreaterThan(0);
    const counts = new Map(names);
    for (const [name, count] of exact) {
      const difference = Math.abs(count - Number(counts.get(name)));
      expect(difference).toBeLessThanOrEqual(Math.min(maxError, 0.02 * count));
    }
  });

  it('take bounded memory for any number of unknown names and prefixes', () => {
    const { read, take } = start();
    read('21.T1/a');
    for (let at = 0; at < READS / 2; at++) {
      read(`21.T1/guess-${at}`, { exists: false });
      read(`99.${at}/${'x'.repeat(300)}`, { exists: false });
    }
    // Half of the rows remain for prefixes with a handle.
    for (let at = 0; at < 20; at++) read(`21.T${at}/a`);
    const rows = take();
    expect(rows).toHaveLength(MAX_PREFIXES + 1);
    expect(rows.filter(({ handles }) => handles.names.length > 0).length).toBeGreaterThan(MAX_PREFIXES / 2);
    for (const { handles, unknown } of rows) {
      expect(handles.names.length + unknown.names.length).toBeLessThanOrEqual(2 * MAX_NAMES);
      for (const [name] of unknown.names) expect(name.length).toBeLessThanOrEqual(251);
    }
    const total = rows.reduce((sum, { totals }) => sum + (totals['record'] ?? 0), 0);
    expect(total).toBe(READS + 21);
  });

  it('keep the prefixes of the month when counts are taken', () => {
    const { read, take } = start();
    for (let round = 0; round < 3; round++) {
      for (let at = 0; at < 20; at++) read(`21.T${round * 20 + at}/a`);
      read('21.T0/a');
      const prefixes = take().map(({ prefix }) => prefix);
      expect(prefixes).toContain('21.T0');
      expect(prefixes).toContain('other');
    }
  });

  it('belong to the month in UTC', () => {
    const { read, take, pass } = start();
    read('21.T1/a');
    pass(1000);
    read('21.T1/a', { times: 2 });
    expect(take()).toMatchObject([
      { month: '2026-11', totals: { record: 1 } },
      { month: '2026-12', totals: { record: 2 } },
    ]);
    expect(take()).toEqual([]);
  });

  it('include prepared hits, each once', () => {
    const { counter, take } = start();
    const line = { family: 'redirect', method: 'GET', status: 302, exists: true } as const;
    const hits = Array.from({ length: 10_000 }, (_, at) => ({
      ...line,
      repeats: 0,
      handle: `21.T1/${at % 3}-${at}`,
    }));
    for (let times = 0; times < 3; times++) for (const hit of hits) counter.addHit(hit);
    expect(take()[0]?.totals).toEqual({ redirect: 30_000 });
    expect(new Set(hits.map(({ repeats }) => repeats))).toEqual(new Set([0]));
  });
});
