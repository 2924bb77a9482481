// Tests the checker with known histories and compares it with an exhaustive search.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Operation, type Verdict, checkHistory } from '../support/linearizability.js';
import { rounds } from '../support/property-rounds.js';

type Span = readonly [from: number, to: number];

const by = (client: string, [invokedAt, respondedAt]: Span) => ({
  client,
  instance: 'i1',
  handle: 'h',
  invokedAt,
  respondedAt,
});
const write = (version: string, span: Span, replaces?: string): Operation => ({
  ...by('w', span),
  kind: 'write',
  version,
  ...(replaces !== undefined && { replaces }),
});
const read = (version: string, span: Span, client = 'r'): Operation => ({
  ...by(client, span),
  kind: 'read',
  version,
});

const check = (...history: Operation[]): Verdict => checkHistory(history, '0');
const kinds = (...history: Operation[]): string[] => check(...history).faults.map(({ kind }) => kind);

describe('linearizability checker', () => {
  describe('linearizable history', () => {
    test.each<[string, Operation[]]>([
      ['nothing happens', []],
      [
        'a read before a write returns the old version, and a read after it the new version',
        [read('0', [0, 1]), write('1', [2, 3]), read('1', [4, 5])],
      ],
      [
        'reads during a write return the old and the new version',
        [write('1', [0, 9]), read('1', [1, 2]), read('0', [3, 4])],
      ],
      [
        'a read started before the acknowledgement returns the old version',
        [write('1', [0, 3]), read('0', [2, 9])],
      ],
      [
        'no read returns a write of unknown outcome',
        [write('1', [0, Infinity]), write('2', [1, 2]), read('2', [3, 4])],
      ],
      [
        'a write of unknown outcome takes effect after a later write',
        [write('1', [0, Infinity]), write('2', [1, 2]), read('2', [3, 4]), read('1', [5, 6])],
      ],
      [
        'reads return two concurrent writes in either order',
        [write('1', [0, 5]), write('2', [0, 5]), read('1', [6, 7]), read('1', [8, 9])],
      ],
      [
        'each conditional write replaces the previous one',
        [write('1', [0, 1], '0'), write('2', [2, 3], '1'), read('2', [4, 5])],
      ],
      [
        'a later write replaces a conditional write of unknown outcome',
        [write('1', [0, Infinity], '0'), write('2', [2, 3], '1'), read('2', [4, 5])],
      ],
    ])('is accepted when %s', (_what, history) => {
      expect(check(...history).faults).toEqual([]);
    });
  });

  describe('fault report', () => {
    test.each<[string, string[], Operation[]]>([
      ['the old version after an acknowledgement', ['stale read'], [write('1', [0, 1]), read('0', [2, 3])]],
      [
        'each read of an old version after an acknowledgement',
        ['stale read', 'stale read'],
        [write('1', [0, 1]), read('0', [2, 3]), read('1', [2, 3]), read('0', [4, 5])],
      ],
      [
        'an older version after its replacement',
        ['stale read'],
        [write('1', [0, 1]), write('2', [2, 3]), read('2', [4, 5]), read('1', [6, 7])],
      ],
      [
        'readers that disagree on the order of concurrent writes',
        ['stale read'],
        [write('1', [0, 5]), write('2', [0, 5]), read('1', [6, 7]), read('2', [6, 7])],
      ],
      [
        'an older version after a conditional write',
        ['stale read'],
        [write('1', [0, 1], '0'), write('2', [2, 3], '1'), read('1', [4, 5])],
      ],
      ['an unwritten version', ['never written'], [read('7', [0, 1])]],
      ['a version before its write', ['never written'], [read('1', [0, 1]), write('1', [2, 3])]],
      ['a condition on an unwritten version', ['never written'], [write('1', [0, 1], '7')]],
      [
        'two conditional writes on one version',
        ['lost update'],
        [write('1', [0, 5], '0'), write('2', [0, 5], '0')],
      ],
      [
        'a conditional write on a replaced version',
        ['lost update'],
        [write('1', [0, 1]), write('2', [2, 3]), write('3', [4, 5], '1')],
      ],
      [
        'conditional writes that replace each other',
        ['lost update'],
        [write('1', [0, 5], '2'), write('2', [0, 5], '1')],
      ],
      [
        'a visible second conditional write of unknown outcome',
        ['lost update'],
        [write('1', [0, 5], '0'), write('2', [0, Infinity], '0'), read('2', [6, 7])],
      ],
    ])('detects %s', (_what, found, history) => {
      expect(kinds(...history)).toEqual(found);
    });

    test('separates faults by handle', () => {
      expect(kinds(write('1', [0, 1]), { ...read('0', [2, 3]), handle: 'other' })).toEqual([]);
    });

    test('includes client, instance and delay', () => {
      expect(check(write('1', [0, 1]), read('0', [2.5, 3])).faults[0]?.what).toBe(
        'r reads h version 0 at i1 from 2.50 to 3.00, begun 1.50 ms after the acknowledgement: w writes h version 1 at i1 from 0.00 to 1.00',
      );
    });
  });

  test('counts reads of an old version after an unacknowledged new version, and reports no fault', () => {
    const { faults, newThenOld } = check(
      write('1', [0, 90]),
      read('1', [10, 20], 'a'),
      read('0', [15, 25], 'a'),
      read('0', [30, 40], 'b'),
      read('0', [50, 60], 'a'),
      read('1', [70, 80], 'b'),
    );
    expect(faults).toEqual([]);
    expect(newThenOld).toEqual({ count: 2, ofOneClient: 1, longestMs: 30 });
  });

  /** Whether an order of the writes explains all operations. */
  function isExplained(history: readonly Operation[]): boolean {
    const reads = history.filter(({ kind }) => kind === 'read');
    const writes = history.filter(({ kind }) => kind === 'write');
    const explains = (order: readonly Operation[]): boolean => {
      const placeOf = (version: string | undefined): number =>
        version === '0' ? 0 : 1 + order.findIndex((each) => each.version === version);
      const ends = [-Infinity, ...order.map(({ respondedAt }) => respondedAt)];
      const isTooLate = ({ invokedAt }: Operation, place: number): boolean =>
        ends.some((end, at) => at > place && end < invokedAt);
      const isWriteRight = (each: Operation): boolean => {
        const place = placeOf(each.version);
        const isNext =
          each.replaces === undefined || (placeOf(each.replaces) === place - 1 && isKnown(each.replaces));
        return isNext && !isTooLate(each, place);
      };
      const isKnown = (version: string): boolean =>
        version === '0' || order.some((each) => each.version === version);
      const isReadRight = (each: Operation): boolean => {
        const written = order.find(({ version }) => version === each.version);
        const isWritten =
          each.version === '0' || (written !== undefined && written.invokedAt <= each.respondedAt);
        return isWritten && !isTooLate(each, placeOf(each.version));
      };
      return order.every(isWriteRight) && reads.every(isReadRight);
    };
    const search = (order: readonly Operation[], left: readonly Operation[]): boolean =>
      (left.every(({ respondedAt }) => respondedAt === Infinity) && explains(order)) ||
      left.some((next) =>
        search(
          [...order, next],
          left.filter((each) => each !== next),
        ),
      );
    return search([], writes);
  }

  test('agrees with an exhaustive search over write orders', () => {
    const spans = fc
      .tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 6 }), fc.boolean())
      .map(([from, length, isOpen]) => ({ from, to: isOpen && length > 4 ? Infinity : from + length }));
    const version = fc.integer({ min: 0, max: 4 }).map(String);
    const histories = fc
      .tuple(
        fc.array(fc.tuple(spans, fc.option(version, { nil: undefined })), { maxLength: 4 }),
        fc.array(fc.tuple(spans, version), { maxLength: 4 }),
      )
      .map(([writes, reads]) => [
        ...writes.map(([{ from, to }, replaces], at) => write(String(at + 1), [from, to], replaces)),
        ...reads.map(([{ from, to }, shown]) => read(shown, [from, Math.min(to, from + 5)])),
      ]);
    fc.assert(
      fc.property(histories, (history) => {
        expect(check(...history).faults.length === 0).toBe(isExplained(history));
      }),
      { numRuns: rounds(5000) },
    );
  });
});
