import { describe, expect, it } from 'vitest';
import { duration, size } from '../../src/config/fields.js';
import { problemsFrom } from '../support/load-config.js';

/** Returns the parsed value; undefined for invalid text. */
const parseDuration = (text: string) =>
  duration({ min: '0s', max: '365d', byDefault: '0s' }).safeParse(text).data;
const parseSize = (text: string) => size({ min: '0B', max: '2GiB', byDefault: '0B' }).safeParse(text).data;

describe('duration', () => {
  it.each([
    ['250ms', 250],
    ['1.8s', 1_800],
    ['60s', 60_000],
    ['5m', 300_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['0s', 0],
  ])('is parsed from %s as %i ms', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each(['60', '', 's', '-1s', '1 s', '1S', '1h30m', '1e3s', '.5s', '8KiB', '1constructor'])(
    'cannot be %j',
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );
});

describe('size', () => {
  it.each([
    ['0B', 0],
    ['8KiB', 8_192],
    ['256MiB', 268_435_456],
    ['1.5GiB', 1_610_612_736],
  ])('is parsed from %s as %i bytes', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  it.each(['8', '8KB', '8k', '60s', '-1B'])('cannot be %j', (text) => {
    expect(parseSize(text)).toBeUndefined();
  });
});

describe('period per prefix', () => {
  it.each([
    '24h',
    'forever',
    '{default: 24h, 21.T1: forever}',
    '{default: forever, 10.1000: 1d, "21.*": 0s}',
  ])('may be %s', (value) => {
    expect(problemsFrom({ yaml: `cache: { staleIfError: ${value} }` })).toEqual([]);
    expect(problemsFrom({ env: { CACHE_STALE_IF_ERROR: value } })).toEqual([]);
  });

  it.each([
    '24',
    '366d',
    '{21.T1: forever}',
    '{default: 24h, 21.T1/: 1d}',
    '{default: 24h, "*": 1d}',
    '{default: 24h, 21.t1: 1d, 21.T1: 1d}',
    '[24h]',
  ])('is rejected with the allowed values: %s', (value) => {
    const [problem = '', ...others] = problemsFrom({ yaml: `cache: { staleIfError: ${value} }` });
    expect(others).toEqual([]);
    expect(problem).toContain('cache.staleIfError');
    expect(problem).toContain('{default: 24h, 21.T1: forever}');
  });
});
