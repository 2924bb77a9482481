import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import type { Entry } from '../../src/cache/entry.js';
import {
  type TtlBounds,
  isNearEnd,
  isNewerThanSecondary,
  isStorable,
  judge,
  makeEntry,
  makeUncheckedEntry,
} from '../../src/cache/policy.js';
import { toBytes } from '../../src/handle/bytes.js';
import type { Answer } from '../../src/handle/outcome.js';
import type { Ttl } from '../../src/handle/value.js';

const ASKED_AT = Date.parse('2026-11-21T10:00:00Z');
const ASKED = { requestedAt: ASKED_AT, wallTime: ASKED_AT };
const bounds: TtlBounds = {
  found: { minTtlMs: 0, maxTtlMs: 3_600_000 },
  notFound: { ttlMs: 30_000 },
  staleIfErrorMs: 86_400_000,
};
const relative = fc.integer({ min: -5, max: 200_000 });
const absolute = fc
  .integer({ min: -100_000, max: 200_000 })
  .map((seconds) => new Date(ASKED_AT + seconds * 1000).toISOString().replace('.000Z', 'Z'));
const ttls = fc.array(fc.oneof(relative, absolute), { minLength: 1, maxLength: 6 });

const found = (ttls: Ttl[]) => ({ kind: 'found', values: toBytes('[]'), ttls }) as const;
const secondsLeft = (ttl: Ttl): number =>
  typeof ttl === 'number' ? ttl : (Date.parse(ttl) - ASKED_AT) / 1000;

describe('cache entry lifetime', () => {
  test.prop([
    ttls,
    fc.integer({ min: -400_000_000_000, max: 400_000_000_000 }),
    fc.integer({ min: -1, max: 1 }),
  ])(
    'is never longer than its maximum by any clock, and has not begun in the future',
    (some, skewMs, margin) => {
      const entry = makeEntry(found(some), ASKED, bounds);
      for (const now of [ASKED_AT + skewMs, entry.staleAt + margin, ASKED_AT + margin]) {
        if (judge(entry, now) !== 'fresh') continue;
        expect(now).toBeGreaterThanOrEqual(entry.requestedAt);
        expect(entry.staleAt - now).toBeLessThanOrEqual(bounds.found.maxTtlMs);
      }
    },
  );

  describe('derived from TTLs', () => {
    test.prop([ttls])('never exceeds any TTL or the maximum', (some) => {
      const life = makeEntry(found(some), ASKED, bounds).staleAt - ASKED_AT;
      for (const ttl of some) expect(life).toBeLessThanOrEqual(Math.max(0, secondsLeft(ttl) * 1000));
      expect(life).toBeLessThanOrEqual(bounds.found.maxTtlMs);
      expect(life).toBeGreaterThanOrEqual(0);
    });

    test.prop([ttls])('is the smallest TTL within the bounds', (some) => {
      const smallest = Math.min(...some.map(secondsLeft)) * 1000;
      fc.pre(smallest > 0 && smallest < bounds.found.maxTtlMs);
      expect(makeEntry(found(some), ASKED, bounds).staleAt).toBe(ASKED_AT + smallest);
    });

    test.prop([ttls, fc.integer({ min: 1, max: 3600 })])(
      'is raised to the minimum for an unexpired TTL',
      (some, min) => {
        const stretched = { ...bounds, found: { minTtlMs: min * 1000, maxTtlMs: 3_600_000 } };
        const entry = makeEntry(found(some), ASKED, stretched);
        const isOver = Math.min(...some.map(secondsLeft)) <= 0;
        expect(isStorable(entry, ASKED_AT)).toBe(!isOver);
        if (!isOver) expect(entry.staleAt - ASKED_AT).toBeGreaterThanOrEqual(min * 1000);
      },
    );

    test.prop([ttls, fc.nat({ max: 100_000_000 })])(
      'progresses from fresh to stale to none',
      (some, later) => {
        const entry = makeEntry(found(some), ASKED, bounds);
        const now = ASKED_AT + later;
        const expected = now < entry.staleAt ? 'fresh' : now < entry.deleteAt ? 'stale' : 'none';
        expect(judge(entry, now)).toBe(expected);
      },
    );

    test('is zero for a TTL of 0, despite a minimum', () => {
      const stretched = { ...bounds, found: { minTtlMs: 60_000, maxTtlMs: 3_600_000 } };
      expect(isStorable(makeEntry(found([3600, 0]), ASKED, stretched), ASKED_AT)).toBe(false);
    });

    test('is zero for an invalid date', () => {
      expect(isStorable(makeEntry(found(['soon']), ASKED, bounds), ASKED_AT)).toBe(false);
    });
  });

  test.each<[Answer, Pick<Entry, 'kind' | 'values' | 'message'>]>([
    [found([1]), { kind: 'found', values: toBytes('[]'), message: '' }],
    [{ kind: 'empty' }, { kind: 'empty', values: toBytes(''), message: '' }],
    [{ kind: 'not-found' }, { kind: 'not-found', values: toBytes(''), message: '' }],
    [
      { kind: 'not-found', message: 'gone' },
      { kind: 'not-found', values: toBytes(''), message: 'gone' },
    ],
  ])('is derived without losing the values or message of %j', (answer, content) => {
    expect(makeEntry(answer, ASKED, bounds)).toMatchObject(content);
  });

  describe('with trustedSince', () => {
    const later = fc.nat({ max: 3_599_999 });

    test.prop([later, fc.integer({ min: 1, max: 3_600_000 })])(
      'is over for an entry loaded earlier, even within its TTL',
      (age, lag) => {
        const entry = makeEntry(found([3600]), ASKED, bounds);
        expect(judge(entry, ASKED_AT + age, ASKED_AT + lag)).toBe('stale');
      },
    );

    test.prop([later, fc.nat({ max: 3_600_000 })])(
      'continues for an entry loaded at or after trustedSince',
      (age, lead) => {
        const entry = makeEntry(found([3600]), ASKED, bounds);
        expect(judge(entry, ASKED_AT + age, ASKED_AT - lead)).toBe('fresh');
      },
    );

    test.prop([later])('is over when there is no lease', (age) => {
      expect(judge(makeEntry(found([3600]), ASKED, bounds), ASKED_AT + age, Infinity)).toBe('stale');
    });
  });

  describe('of a secondary response', () => {
    const withSecondary = { ...bounds, secondaryMaxTtlMs: 60_000 };
    const absent = { kind: 'not-found', message: 'gone' } as const;

    test('is at most secondaryMaxTtlMs, followed by the stale period', () => {
      const entry = makeEntry({ ...found([3600]), isFromSecondary: true }, ASKED, withSecondary);
      expect(entry.staleAt).toBe(ASKED_AT + 60_000);
      expect(entry.deleteAt).toBe(entry.staleAt + bounds.staleIfErrorMs);
      expect(makeEntry(found([3600]), ASKED, withSecondary).staleAt).toBe(ASKED_AT + 3_600_000);
      expect(makeEntry({ ...found([3600]), isFromSecondary: true }, ASKED, bounds).staleAt).toBe(
        ASKED_AT + 3_600_000,
      );
    });

    test('has no stale period when not found', () => {
      const entry = makeEntry({ ...absent, isFromSecondary: true }, ASKED, withSecondary);
      expect(entry.deleteAt).toBe(entry.staleAt);
      expect(entry.message).toBe('gone');
      expect(makeEntry(absent, ASKED, withSecondary).deleteAt).toBe(
        ASKED_AT + 30_000 + bounds.staleIfErrorMs,
      );
    });

    test('is skipped if a cached entry was loaded less than secondaryMaxTtlMs before', () => {
      const entry = makeEntry(found([3600]), ASKED, bounds);
      expect(isNewerThanSecondary(entry, ASKED_AT + 59_999, withSecondary)).toBe(true);
      expect(isNewerThanSecondary(entry, ASKED_AT + 60_000, withSecondary)).toBe(false);
      expect(isNewerThanSecondary(entry, ASKED_AT, bounds)).toBe(false);
    });
  });

  describe('after a restart, until it is revalidated', () => {
    const RESTARTED = ASKED_AT + 1000;
    const restoredAt = { now: RESTARTED, wallTime: RESTARTED, staleIfErrorMs: 60_000, hasServer: true };
    const restore = (answer: Answer, changes: Partial<TtlBounds> = {}) =>
      makeUncheckedEntry(makeEntry(answer, ASKED, { ...bounds, ...changes }), restoredAt);

    test('is stale for staleIfErrorMs, also if it was stored with a smaller one', () => {
      for (const staleIfErrorMs of [0, 1, 60_000]) {
        const entry = restore(found([10]), { staleIfErrorMs });
        expect(judge(entry, RESTARTED)).toBe('stale');
        expect(entry.deleteAt).toBe(ASKED_AT + 70_000);
      }
    });

    test('is over for the absence of a record in a secondary', () => {
      const absent = { kind: 'not-found', message: 'gone' } as const;
      expect(judge(restore({ ...absent, isFromSecondary: true }), RESTARTED)).toBe('none');
      expect(judge(restore(absent), RESTARTED)).toBe('stale');
    });
  });

  test('is nearly over in the last tenth of its TTL', () => {
    const entry = makeEntry(found([1000]), ASKED, bounds);
    expect(isNearEnd(entry, ASKED_AT + 900_000)).toBe(false);
    expect(isNearEnd(entry, ASKED_AT + 900_001)).toBe(true);
  });

  describe('at its boundaries', () => {
    const entry = makeEntry(found([10]), ASKED, bounds);

    test('ends at deleteAt, when the entry is no longer storable', () => {
      expect(isStorable(entry, entry.deleteAt - 1)).toBe(true);
      expect(isStorable(entry, entry.deleteAt)).toBe(false);
      expect(judge(entry, entry.deleteAt - 1)).toBe('stale');
      expect(judge(entry, entry.deleteAt)).toBe('none');
      expect(judge(undefined, ASKED_AT)).toBe('none');
    });

    test('becomes stale at staleAt', () => {
      expect(judge(entry, entry.staleAt - 1)).toBe('fresh');
      expect(judge(entry, entry.staleAt)).toBe('stale');
    });
  });
});
