// Acknowledgements of a message by other members.
import { describe, expect, test } from 'vitest';
import { Acknowledgements } from '../../../src/cache/link/acknowledgements.js';
import { isSettled } from '../../support/manual-clock.js';

function begin(): Acknowledgements {
  const acknowledgements = new Acknowledgements();
  acknowledgements.begin();
  return acknowledgements;
}

describe('acknowledgements', () => {
  test('complete immediately when there are no other members', async () => {
    expect(await isSettled(begin().waitForAll('1', []))).toBe(true);
  });

  test('are awaited from every member', async () => {
    const acknowledgements = begin();
    const all = acknowledgements.waitForAll('1', ['a', 'b']);
    acknowledgements.receive('a', ['1']);
    expect(await isSettled(all)).toBe(false);
    expect(acknowledgements.missing('1', ['a', 'b'])).toEqual(['b']);
    acknowledgements.receive('b', ['1']);
    expect(await isSettled(all)).toBe(true);
  });

  test('are accepted even before the member list arrives', async () => {
    const acknowledgements = begin();
    acknowledgements.receive('a', ['1']);
    expect(await isSettled(acknowledgements.waitForAll('1', ['a']))).toBe(true);
  });

  test('complete several calls through one message', async () => {
    const acknowledgements = begin();
    acknowledgements.begin();
    const [one, two] = ['1', '2'].map((call) => acknowledgements.waitForAll(call, ['a']));
    acknowledgements.receive('a', ['1', '2']);
    expect(await isSettled(Promise.all([one, two]))).toBe(true);
  });

  test('do not complete a different call', async () => {
    const acknowledgements = begin();
    acknowledgements.begin();
    const all = acknowledgements.waitForAll('1', ['a']);
    acknowledgements.receive('a', ['2']);
    expect(await isSettled(all)).toBe(false);
  });

  test('are ignored for a finished or unknown call', () => {
    const acknowledgements = begin();
    acknowledgements.end('1');
    acknowledgements.receive('a', ['1', 'unheard']);
    expect(acknowledgements.missing('1', ['a'])).toEqual(['a']);
  });
});
