// Encoding of changes as one line on a Redis channel.
import { fc, test } from '../../support/property.js';
import { describe, expect } from 'vitest';
import {
  type Change,
  formatChange,
  isInvalidation,
  memberOf,
  parseMessage,
} from '../../../src/cache/coherence/message.js';
import { unicodeTexts } from '../../support/code-points.js';

const keys = unicodeTexts();
const fences = fc.tuple(fc.uuid(), fc.nat(), fc.nat()).map(([id, from, at]) => `${id}/${from}.${at}`);
const numbers = fc.maxSafeNat();
const changes: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('raise' as const, 'unknown' as const),
    key: keys,
    fence: fences,
    lifeMs: fc.nat(),
  }),
  fc.record({ kind: fc.constantFrom('changed' as const, 'unchanged' as const), key: keys, fence: fences }),
  fc.record({
    kind: fc.constantFrom('forget' as const, 'soften' as const),
    key: keys,
  }),
  fc.record({
    kind: fc.constant('ban' as const),
    prefix: keys,
    isSoft: fc.boolean(),
    number: fc.constant(0),
  }),
);

describe('invalidation message', () => {
  describe('encoded as a line', () => {
    test.prop([changes, fc.uuid(), fc.constantFrom('', '1', '4711'), numbers])(
      'survives formatting and parsing unchanged',
      (change, member, call, seq) => {
        const line = `${seq} ${formatChange(change, { member, call })}`;
        const read = change.kind === 'ban' ? { ...change, number: seq } : change;
        expect(parseMessage(line)).toEqual({ seq, member, call, change: read });
      },
    );

    test.each(['21.T1/a b', 'a\nb', '\n', ' ', '', '漢字 😀', '\u2028', 'forget x', '-'])(
      'preserves the key %j',
      (key) => {
        const line = `7 ${formatChange({ kind: 'forget', key }, { member: 'm', call: '' })}`;
        expect(parseMessage(line)?.change).toEqual({ kind: 'forget', key });
      },
    );

    test.each([
      '',
      'x',
      '1',
      '1 m c',
      '1 m c forget - 0',
      '1 m c forget - x KEY',
      'x m c forget - 0 KEY',
      '99999999999999999999 m c forget - 0 KEY',
    ])('is ignored when the line is %j', (line) => {
      expect(parseMessage(line)).toBeUndefined();
    });

    test.each(['unheard', 'epoch', 'bans', 'distrust', '__proto__', 'toString'])(
      'is ignored when the kind is %j',
      (kind) => {
        expect(parseMessage(`1 m c ${kind} - 0 KEY`)).toBeUndefined();
      },
    );

    test('is applied and acknowledged as forget when version 0.3 has replaced the entry in Redis', () => {
      const change = { kind: 'forget', key: 'KEY' };
      expect(parseMessage('1 m c replaced - 0 KEY')).toEqual({ seq: 1, member: 'm', call: 'c', change });
    });

    test.prop([unicodeTexts()])('is parsed without throwing, whatever its text', (line) => {
      expect(() => parseMessage(line)).not.toThrow();
    });
  });

  test('names the member that raised its fence', () => {
    expect(memberOf('some-member/3.17')).toBe('some-member');
  });

  test('invalidates its key unless it raises a fence or reports a rejected write', () => {
    const fence = { key: 'A', fence: 'm/0.1' };
    expect(isInvalidation({ kind: 'raise', ...fence, lifeMs: 1 })).toBe(false);
    expect(isInvalidation({ kind: 'unchanged', ...fence })).toBe(false);
    expect(isInvalidation({ kind: 'changed', ...fence })).toBe(true);
    expect(isInvalidation({ kind: 'unknown', ...fence, lifeMs: 1 })).toBe(true);
    for (const kind of ['forget', 'soften'] as const) expect(isInvalidation({ kind, key: 'A' })).toBe(true);
    expect(isInvalidation({ kind: 'ban', prefix: '', isSoft: true, number: 0 })).toBe(true);
  });
});
