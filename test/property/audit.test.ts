import { partial } from '../support/partial.js';
import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { type AuditedAnswer, classify, createSampler } from '../../src/plugins/audit/audit.js';
import { toBytes } from '../../src/handle/bytes.js';
import type { Outcome } from '../../src/handle/outcome.js';

const [OLD, NEW] = [toBytes('["old"]'), toBytes('["new"]')];
const found = (values: typeof OLD): Outcome => ({ kind: 'found', values, ttls: [86_400] });

const time = fc.integer({ min: 0, max: 20 });
const audited = fc.record({
  served: fc.record({
    entry: fc.record({
      kind: fc.constantFrom('found', 'not-found', 'empty'),
      values: fc.constantFrom(OLD, NEW),
      requestedAt: time,
    }),
    at: time,
  }),
  record: fc.constantFrom(undefined, found(OLD), found(NEW), { kind: 'not-found' } as const),
  writes: fc.record({
    isInFlight: fc.boolean(),
    appliedAt: fc.option(time, { nil: undefined }),
    marginMs: fc.constantFrom(0, 5),
  }),
});

/** A hit at 100 on an entry loaded at 50, whose record has changed since. */
const differing: AuditedAnswer = {
  served: { entry: partial({ kind: 'found', values: OLD, requestedAt: 50 }), at: 100 },
  record: found(NEW),
  writes: { isInFlight: false, appliedAt: undefined, marginMs: 0 },
};
const after = (writes: Partial<AuditedAnswer['writes']>): AuditedAnswer => ({
  ...differing,
  writes: { ...differing.writes, ...writes },
});

describe('classification of an audited entry', () => {
  test('is older-within-ttl if no write is known', () => {
    expect(classify(differing)).toBe('older-within-ttl');
  });

  test('is older-after-acknowledged-write for an entry loaded before a write and served after it', () => {
    expect(classify(after({ appliedAt: 60 }))).toBe('older-after-acknowledged-write');
  });

  test('is older-within-ttl for an entry loaded after the last write', () => {
    expect(classify(after({ appliedAt: 40 }))).toBe('older-within-ttl');
  });

  test('is inconclusive if clock skew may have dated the load before the write', () => {
    expect(classify(after({ appliedAt: 60, marginMs: 20 }))).toBe('inconclusive');
  });

  test('is equal for a not-found entry whose message differs', () => {
    const entry = { kind: 'not-found', values: toBytes(''), requestedAt: 50 } as const;
    const record = { kind: 'not-found', message: 'no such handle' } as const;
    expect(classify({ ...differing, served: { entry: partial(entry), at: 100 }, record })).toBe('equal');
  });

  test.prop([audited])(
    'is older-after-acknowledged-write only for an entry loaded before a write and served after it',
    (answer) => {
      if (classify(partial(answer)) !== 'older-after-acknowledged-write') return;
      const { served, writes } = answer;
      expect(writes.isInFlight).toBe(false);
      expect(served.entry.requestedAt).toBeLessThan((writes.appliedAt ?? -Infinity) - writes.marginMs);
      expect(writes.appliedAt).toBeLessThan(served.at);
    },
  );

  test.prop([audited])('does not depend on writes if the record is equal or unknown', (answer) => {
    const withoutWrites = { ...answer, writes: differing.writes };
    const result = classify(partial(withoutWrites));
    if (result === 'equal' || answer.record === undefined) expect(classify(partial(answer))).toBe(result);
  });

  test.prop([audited])('is never equal for an entry that differs from the record', (answer) => {
    const { served, record } = answer;
    if (classify(partial(answer)) !== 'equal') return;
    expect(record?.kind).toBe(served.entry.kind);
    if (record?.kind === 'found') expect(record.values).toBe(served.entry.values);
  });
});

describe('audit sampler', () => {
  test('samples every call with probability 1', () => {
    const isSampled = createSampler(1);
    expect(Array.from({ length: 100 }, isSampled)).not.toContain(false);
  });

  test('samples no call with probability 0', () => {
    const isSampled = createSampler(0);
    expect(Array.from({ length: 100 }, isSampled)).not.toContain(true);
  });

  test('samples calls in proportion to the probability', () => {
    const isSampled = createSampler(0.1);
    const taken = Array.from({ length: 100_000 }, isSampled).filter(Boolean).length;
    expect(taken).toBeGreaterThan(9000);
    expect(taken).toBeLessThan(11_000);
  });
});
