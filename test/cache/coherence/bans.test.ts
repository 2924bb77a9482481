// Bans: purges of many keys in one step.
import { fc, test as propertyTest } from '../../support/property.js';
import { describe, expect, test } from 'vitest';
import { Bans, MAX_BANNED, type NumberedBan } from '../../../src/cache/coherence/bans.js';
import { NOW, entryOf } from '../../support/store-contract.js';

const ban = (number: number, prefix: string, isSoft = false): NumberedBan => ({ number, prefix, isSoft });
const entry = entryOf('x');
const stale = entryOf('x', { staleAt: 0 });

describe('ban', () => {
  test('invalidates only older entries under its prefix', () => {
    const bans = new Bans();
    bans.add(ban(10, '21.T1/A'));
    expect(bans.apply('21.T1/ABC', entry, 9)).toBeUndefined();
    expect(bans.apply('21.T1/ABC', entry, 10)).toEqual(entry);
    expect(bans.apply('21.T1/B', entry, 9)).toEqual(entry);
  });

  test('leaves entries available as stale when it is soft', () => {
    const bans = new Bans();
    bans.add(ban(10, '', true));
    expect(bans.apply('21.T1/A', entry, 9)).toEqual(stale);
    expect(stale.deleteAt).toBeGreaterThan(NOW);
  });

  test('overrides a later soft ban when it is hard', () => {
    const bans = new Bans();
    bans.add(ban(10, '21.T1/', false));
    bans.add(ban(11, '21.T1/A', true));
    expect(bans.apply('21.T1/A', entry, 9)).toBeUndefined();
    expect(bans.apply('21.T1/A', entry, 10)).toEqual(stale);
  });

  test('applies next to an older soft ban of a shorter prefix, whichever is found first', () => {
    const bans = new Bans();
    for (const one of [ban(9, 'XX', true), ban(10, 'A', true), ban(12, 'AB', true)]) bans.add(one);
    expect(bans.apply('ABC', entry, 11)).toEqual(stale);
    expect(bans.apply('AC', entry, 11)).toEqual(entry);
  });

  test('voids only earlier loads of its keys', () => {
    const bans = new Bans();
    bans.add(ban(10, '21.T1/A', true));
    expect(bans.isBannedSince('21.T1/ABC', 9)).toBe(true);
    expect(bans.isBannedSince('21.T1/ABC', 10)).toBe(false);
    expect(bans.isBannedSince('21.T1/B', 9)).toBe(false);
  });

  test('is added once, and not at all after a later ban that covers it', () => {
    const bans = new Bans();
    expect(bans.add(ban(10, '21.T1/A'))).toBe(true);
    expect(bans.add(ban(10, '21.T1/A'))).toBe(false);
    expect(bans.add(ban(12, '21.T1/'))).toBe(true);
    expect(bans.add(ban(11, '21.T1/B', true))).toBe(false);
    expect(bans.latest).toBe(12);
  });

  test('is ordered by its number when it arrives late', () => {
    const bans = new Bans();
    bans.add(ban(12, '21.T1/B'));
    expect(bans.add(ban(11, '21.T1/A'))).toBe(true);
    expect(bans.latest).toBe(12);
    expect(bans.apply('21.T1/A', entry, 10)).toBeUndefined();
    expect(bans.apply('21.T1/A', entry, 11)).toEqual(entry);
  });

  test('applies to every key once it has been dropped from the full list', () => {
    const bans = new Bans();
    for (let number = 1; number <= MAX_BANNED + 1; number++) bans.add(ban(number, `21.T1/${number}-`));
    expect(bans.apply('21.T1/OTHER', entry, 0)).toBeUndefined();
    expect(bans.isBannedSince('21.T1/OTHER', 0)).toBe(true);
    expect(bans.apply('21.T1/OTHER', entry, 1)).toEqual(entry);
  });

  test('marks every key stale once it has been dropped from the full list, if it was soft', () => {
    const bans = new Bans();
    for (let number = 1; number <= MAX_BANNED + 1; number++)
      bans.add(ban(number, `21.T1/${number}-`, number === 1));
    expect(bans.apply('21.T1/OTHER', entry, 0)).toEqual(stale);
    expect(bans.isBannedSince('21.T1/OTHER', 0)).toBe(true);
  });

  test('applies to every key, and is not new, when its number is below the Redis floor', () => {
    const bans = new Bans();
    bans.raiseFloor(20);
    expect(bans.latest).toBe(20);
    expect(bans.add(ban(20, '21.T1/A'))).toBe(false);
    expect(bans.apply('21.T1/B', entry, 19)).toBeUndefined();
    expect(bans.apply('21.T1/B', entry, 20)).toEqual(entry);
  });

  test('voids no load that starts after the Redis floor has passed it', () => {
    const bans = new Bans();
    bans.add(ban(10, '21.T1/A'));
    bans.raiseFloor(20);
    expect(bans.latest).toBe(20);
    expect(bans.isBannedSince('21.T1/A', bans.latest)).toBe(false);
    expect(bans.apply('21.T1/A', entry, bans.latest)).toEqual(entry);
    expect(bans.apply('21.T1/B', entry, 19)).toBeUndefined();
  });

  test('still applies when the Redis floor passes an earlier ban of its prefix', () => {
    const bans = new Bans();
    bans.add(ban(10, '21.T1/A'));
    bans.add(ban(12, '21.T1/A', true));
    bans.raiseFloor(11);
    expect(bans.apply('21.T1/A', entry, 11)).toEqual(stale);
  });
});

describe('ban list', () => {
  const prefixes = fc.stringMatching(/^[AB]{0,3}$/);
  const sequences = fc
    .array(fc.record({ prefix: prefixes, isSoft: fc.boolean() }), { maxLength: 30 })
    .chain((some) =>
      fc.shuffledSubarray(
        some.map((one, at) => ({ ...one, number: at + 1 })),
        { minLength: some.length },
      ),
    );

  propertyTest.prop([sequences, prefixes, fc.nat({ max: 31 })])(
    'bans every key that any of its bans matches, in any arrival order',
    (sequence, key, since) => {
      const bans = new Bans();
      for (const one of sequence) bans.add(one);
      const matching = sequence.filter((one) => one.number > since && key.startsWith(one.prefix));
      const expected = matching.some(({ isSoft }) => !isSoft)
        ? undefined
        : matching.length > 0
          ? stale
          : entry;
      expect(bans.apply(key, entry, since)).toEqual(expected);
      expect(bans.isBannedSince(key, since)).toBe(matching.length > 0);
      expect(bans.latest).toBe(sequence.length);
    },
  );

  test('stores one ban for a repeatedly purged prefix', () => {
    const bans = new Bans();
    const numbers = Array.from({ length: 2 * MAX_BANNED }, (_, at) => at + 1);
    expect(numbers.filter((number) => !bans.add(ban(number, 'A')))).toEqual([]);
    expect(bans.apply('B', entry, 0)).toEqual(entry);
  });

  test('keeps a prefix that was purged again longer than those that were not', () => {
    const bans = new Bans();
    for (let number = 1; number <= MAX_BANNED; number++) bans.add(ban(number, `${number}-`));
    bans.add(ban(MAX_BANNED + 1, '1-'));
    bans.add(ban(MAX_BANNED + 2, 'NEW'));
    expect(bans.apply('OTHER', entry, 1)).toBeUndefined();
    expect(bans.apply('OTHER', entry, 2)).toEqual(entry);
  });

  test('accepts a new ban even if the oldest ban must be dropped', () => {
    const bans = new Bans();
    const numbers = Array.from({ length: MAX_BANNED + 1 }, (_, at) => at + 1);
    expect(numbers.filter((number) => !bans.add(ban(number, `${number}-`)))).toEqual([]);
  });
});
