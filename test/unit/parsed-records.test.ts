// The values of a large record are parsed in steps and cached.
import { describe, expect, test, vi } from 'vitest';
import { toBytes } from '../../src/handle/bytes.js';
import { keepLoaded, readValues, valuesOf } from '../../src/resolver/parsed-records.js';
import { countSteps, finish } from '../support/steps.js';

const entryOf = (count: number, text: string) => {
  const values = Array.from({ length: count }, (_, at) => ({ index: at + 1, type: 'URL', data: text }));
  return { values, entry: { kind: 'found' as const, values: toBytes(JSON.stringify(values)) } };
};

describe('parsed values of a cache entry', () => {
  test('are identical whether parsed in one step or several', () => {
    for (const [count, text] of [
      [0, ''],
      [1, 'ä漢😀"\\]}'],
      [3000, 'steps ä'],
      [2000, '[{,"'],
    ] as const) {
      const { values, entry } = entryOf(count, text);
      expect(readValues(entry, finish)).toEqual(values);
      expect(valuesOf(entry)).toEqual(values);
    }
    expect(valuesOf({ ...entryOf(1, 'x').entry, kind: 'not-found' })).toEqual([]);
  });

  test('are cached for a large record', () => {
    const { entry } = entryOf(2000, 'parsed once');
    const first = readValues(entry, finish);
    const parse = vi.spyOn(JSON, 'parse');
    const again = { ...entry, values: toBytes(`${entry.values} `.slice(0, -1)) };
    expect(valuesOf(again)).toBe(first);
    expect(readValues(again, finish)).toBe(first);
    expect(parse).not.toHaveBeenCalled();
  });

  test('are retained for the last loaded record', () => {
    const [one, other] = [entryOf(1, 'loaded'), entryOf(1, 'not loaded')];
    keepLoaded({ kind: 'found', values: one.entry.values, parsed: one.values, ttls: [] });
    expect(valuesOf(other.entry)).toEqual(other.values);
    expect(valuesOf(one.entry)).toBe(one.values);
  });

  test('require at most twice the steps for twice the values', () => {
    const steps = (count: number): number => {
      const { entry } = entryOf(count, 'counted');
      return Number(readValues(entry, (parsing) => countSteps(parsing).steps));
    };
    const once = steps(2000);
    expect(once).toBeGreaterThan(0);
    expect(steps(4000)).toBeLessThanOrEqual(2 * once);
  });
});
