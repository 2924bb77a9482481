// Who has acknowledged a call.
import { expect, test } from 'vitest';
import { Acknowledgements } from '../../../src/cache/link/acknowledgements.js';
import { isSettled } from '../../support/manual-clock.js';

function begin(): Acknowledgements {
  const acknowledgements = new Acknowledgements();
  acknowledgements.begin();
  return acknowledgements;
}

test('a call without other members is acknowledged', async () => {
  expect(await isSettled(begin().waitForAll('1', []))).toBe(true);
});

test('a call waits for each member', async () => {
  const acknowledgements = begin();
  const all = acknowledgements.waitForAll('1', ['a', 'b']);
  acknowledgements.receive('a', ['1']);
  expect(await isSettled(all)).toBe(false);
  expect(acknowledgements.missing('1', ['a', 'b'])).toEqual(['b']);
  acknowledgements.receive('b', ['1']);
  expect(await isSettled(all)).toBe(true);
});

test('an acknowledgement that arrives before the members are known counts', async () => {
  const acknowledgements = begin();
  acknowledgements.receive('a', ['1']);
  expect(await isSettled(acknowledgements.waitForAll('1', ['a']))).toBe(true);
});

test('several calls are acknowledged in one message', async () => {
  const acknowledgements = begin();
  acknowledgements.begin();
  const [one, two] = ['1', '2'].map((call) => acknowledgements.waitForAll(call, ['a']));
  acknowledgements.receive('a', ['1', '2']);
  expect(await isSettled(Promise.all([one, two]))).toBe(true);
});

test('a member that has acknowledged another call is waited for', async () => {
  const acknowledgements = begin();
  acknowledgements.begin();
  const all = acknowledgements.waitForAll('1', ['a']);
  acknowledgements.receive('a', ['2']);
  expect(await isSettled(all)).toBe(false);
});

test('an acknowledgement of a call that is over, or was none, does no harm', () => {
  const acknowledgements = begin();
  acknowledgements.end('1');
  acknowledgements.receive('a', ['1', 'unheard']);
  expect(acknowledgements.missing('1', ['a'])).toEqual(['a']);
});
