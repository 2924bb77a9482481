// Pending invalidations: made during a Redis outage, and not yet published.
import { describe, expect, test, vi } from 'vitest';
import { MAX_BANNED, MAX_LISTED_BANS } from '../../../src/cache/coherence/bans.js';
import type { Change } from '../../../src/cache/coherence/message.js';
import { PendingInvalidations } from '../../../src/cache/coherence/pending-invalidations.js';

const EVERY_KEY: Change = { kind: 'ban', prefix: '', isSoft: false, number: 0 };
const EVERY_KEY_SOFT: Change = { ...EVERY_KEY, isSoft: true };
const forget = (key: string): Change => ({ kind: 'forget', key });
const soften = (key: string): Change => ({ kind: 'soften', key });

describe('pending invalidations', () => {
  test.each<[Change, Change]>([
    [{ kind: 'changed', key: 'A', fence: 'm/0.1' }, forget('A')],
    [{ kind: 'unknown', key: 'A', fence: 'm/0.1', lifeMs: 1 }, soften('A')],
    [forget('A'), forget('A')],
    [soften('A'), soften('A')],
    [EVERY_KEY, EVERY_KEY],
  ])('are published once: %j as %j', (change, reported) => {
    const pending = new PendingInvalidations();
    pending.add(change);
    expect(pending.size).toBe(1);
    expect(pending.take(10)).toEqual([reported]);
    expect(pending.take(10)).toEqual([]);
  });

  test('delete a key that was both invalidated and marked stale, in either order', () => {
    for (const changes of [
      [forget('A'), soften('A')],
      [soften('A'), forget('A')],
    ]) {
      const pending = new PendingInvalidations();
      for (const change of changes) pending.add(change);
      expect(pending.take(10)).toEqual([forget('A')]);
    }
  });

  test('are taken in batches, and requeued after a failed publication', () => {
    const pending = new PendingInvalidations();
    for (const key of ['A', 'B', 'C']) pending.add(forget(key));
    const taken = pending.take(2);
    expect(taken).toEqual([forget('A'), forget('B')]);
    for (const change of taken) pending.add(change);
    expect(pending.take(10)).toEqual([forget('C'), forget('A'), forget('B')]);
  });

  test('include a key again when it changes during its publication', () => {
    const pending = new PendingInvalidations();
    pending.add(forget('A'));
    pending.take(10);
    pending.add(forget('A'));
    expect(pending.take(10)).toEqual([forget('A')]);
  });

  test('become one soft ban on every key when there are too many keys, which deletes no other record', () => {
    const pending = new PendingInvalidations();
    for (let at = 0; at <= 100_000; at++) pending.add(at % 2 === 0 ? soften(`${at}`) : forget(`${at}`));
    expect(pending.take(10)).toEqual([EVERY_KEY_SOFT]);
  });

  const ban = (prefix: string, isSoft = false): Change => ({ kind: 'ban', prefix, isSoft, number: 0 });

  test.each<[string, Change[], Change[]]>([
    ['an equal ban', [ban('A'), ban('A')], [ban('A')]],
    ['a ban on a longer prefix', [ban('A'), ban('AB'), ban('AC', true)], [ban('A')]],
    ['an earlier ban on a longer prefix', [ban('AB'), ban('B'), ban('A')], [ban('B'), ban('A')]],
    ['a soft ban and an equal hard ban', [ban('A', true), ban('A')], [ban('A')]],
    ['a hard ban, which a soft ban does not cover', [ban('AB'), ban('A', true)], [ban('AB'), ban('A', true)]],
  ])('contain only bans that no other ban covers (%s)', (_what, changes, reported) => {
    const pending = new PendingInvalidations();
    for (const change of changes) pending.add(change);
    expect(pending.take(10)).toEqual(reported);
  });

  test.each([
    ['hard if any of them is hard', false],
    ['soft if all of them are soft', true],
  ])('become one ban on every key beyond the ban limit of memory (%s)', (_what, isSoft) => {
    const pending = new PendingInvalidations();
    for (let at = 0; at <= MAX_BANNED; at++) pending.add(ban(`${at}/`, isSoft || at > 0));
    expect(pending.take(MAX_BANNED)).toEqual([ban('', isSoft)]);
  });

  test('are published individually when they follow one ban for too many', () => {
    const pending = new PendingInvalidations();
    for (let at = 0; at <= MAX_BANNED; at++) pending.add(ban(`${at}/`, true));
    pending.add(ban('A'));
    expect(pending.take(10)).toEqual([EVERY_KEY_SOFT, ban('A')]);
  });

  test('are taken in batches of bans and keys', () => {
    const pending = new PendingInvalidations();
    for (const change of [forget('1'), ban('A'), ban('B'), ban('C')]) pending.add(change);
    expect(pending.take(2)).toEqual([ban('A'), ban('B')]);
    expect(pending.take(2)).toEqual([ban('C'), forget('1')]);
  });

  test('do not become one ban on every key when there are more bans than Redis lists', () => {
    const pending = new PendingInvalidations();
    for (let at = 0; at <= MAX_LISTED_BANS; at++) pending.add(ban(`${at}/`));
    expect(pending.take(MAX_BANNED)).toHaveLength(MAX_LISTED_BANS + 1);
  });

  test('are added in linear time', () => {
    /** Returns how many texts are compared. */
    const comparedFor = (count: number): number => {
      const pending = new PendingInvalidations();
      const compare = vi.spyOn(String.prototype, 'startsWith');
      const cut = vi.spyOn(String.prototype, 'slice');
      for (let at = 0; at < count; at++) pending.add(ban(`${1000 + at}/`));
      const compared = compare.mock.calls.length + cut.mock.calls.length;
      compare.mockRestore();
      cut.mockRestore();
      return compared;
    };
    expect(comparedFor(400)).toBeLessThan(2.5 * comparedFor(200));
  });

  test('are published individually when they follow a ban on every key', () => {
    const pending = new PendingInvalidations();
    for (let at = 0; at <= 100_001; at++) pending.add(forget(`${at}`));
    expect(pending.take(10)).toEqual([EVERY_KEY_SOFT, forget('100001')]);
  });
});
