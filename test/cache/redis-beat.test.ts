// A roll call ends when every other instance has obeyed what was said before it, or trusts its memory no more.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { PROOF_LIFE_MS } from '../../src/cache/trust.js';
import { type Instance, createBeatBus } from '../support/beat-bus.js';

async function isOver(promise: Promise<void>): Promise<boolean> {
  let over = false;
  void promise.then(() => (over = true));
  await nextTurn();
  return over;
}

/** Everybody hears of everybody. */
async function meet(...instances: Instance[]): Promise<void> {
  for (const each of instances) each.prove();
  for (const each of instances) each.hearAll();
  await nextTurn();
}

test('who is alone waits for nobody', async () => {
  const one = createBeatBus().join('one');
  const { heard } = one.tell();
  one.hearAll();
  expect(await isOver(heard)).toBe(true);
});

test('a call waits for each of the others', async () => {
  const bus = createBeatBus();
  const [one, two, three] = [bus.join('one'), bus.join('two'), bus.join('three')];
  await meet(one, two, three);
  const { heard } = one.tell();
  one.hearAll();
  two.hearAll();
  one.hearAll();
  expect(await isOver(heard)).toBe(false);
  three.hearAll();
  one.hearAll();
  expect(await isOver(heard)).toBe(true);
});

test('an instance whose first sign is on its way is waited for', async () => {
  const bus = createBeatBus();
  const [one, two] = [bus.join('one'), bus.join('two')];
  two.prove();
  const { heard } = one.tell();
  one.hearAll();
  expect(await isOver(heard)).toBe(false);
});

test('whoever has answered is known from then on, also before its next sign', async () => {
  const bus = createBeatBus();
  const two = bus.join('two');
  two.prove();
  const one = bus.join('one');
  void one.tell();
  for (const each of [two, one]) each.hearAll();
  const { heard } = one.tell();
  one.hearAll();
  expect(await isOver(heard)).toBe(false);
});

test('in a cluster the answer has to come by way of every master', async () => {
  const bus = createBeatBus({ masters: 2 });
  const [one, two] = [bus.join('one'), bus.join('two')];
  await meet(one, two);
  const { heard } = one.tell();
  while (two.hear(0));
  one.hearAll();
  expect(await isOver(heard)).toBe(false);
  two.hearAll();
  one.hearAll();
  expect(await isOver(heard)).toBe(true);
});

test('one that has left is not waited for', async () => {
  const bus = createBeatBus();
  const [one, two] = [bus.join('one'), bus.join('two')];
  await meet(one, two);
  const { heard } = one.tell();
  one.hearAll();
  await two.beat.leave({
    publish: (channel: string, text: string) => Promise.resolve(one.beat.hear(channel, text)),
  } as never);
  one.prove();
  one.hearAll();
  expect(await isOver(heard)).toBe(true);
});

test('one that stands still is waited for until it trusts its memory no more, and then for no call', async () => {
  const bus = createBeatBus();
  const [one, two] = [bus.join('one'), bus.join('two')];
  await meet(one, two);
  const { heard } = one.tell();
  for (bus.clock.ms = 0; bus.clock.ms <= PROOF_LIFE_MS; bus.clock.ms += 500) {
    one.prove();
    one.hearAll();
    expect(await isOver(heard)).toBe(false);
  }
  bus.clock.ms = 1.2 * PROOF_LIFE_MS;
  one.prove();
  one.hearAll();
  expect(await isOver(heard)).toBe(true);
  const { heard: later } = one.tell();
  one.hearAll();
  expect(await isOver(later)).toBe(true);
});

test('whoever joins after a call is not waited for', async () => {
  const bus = createBeatBus();
  const [one, two] = [bus.join('one'), bus.join('two')];
  await meet(one, two);
  const { heard } = one.tell();
  one.hearAll();
  const three = bus.join('three');
  three.prove();
  two.hearAll();
  one.hearAll();
  expect(await isOver(heard)).toBe(true);
});

test('one that missed a call for a new connection is waited for only as long as older signs count', async () => {
  const bus = createBeatBus();
  const [one, two] = [bus.join('one'), bus.join('two')];
  await meet(one, two);
  const { heard } = one.tell();
  one.hearAll();
  const twoAgain = bus.join('two');
  for (; bus.clock.ms <= 1.2 * PROOF_LIFE_MS; bus.clock.ms += 400) {
    expect(await isOver(heard)).toBe(false);
    for (const each of [one, twoAgain]) each.prove();
    for (const each of [one, twoAgain]) each.hearAll();
  }
  expect(await isOver(heard)).toBe(true);
});

test.each(['', 'x', 'alive', 'alive ', 'call a b', 'alive  1', 'some-instance forget - 0 x'])(
  'nobody is waited for because of "%s"',
  async (text) => {
    const one = createBeatBus().join('one');
    one.beat.hear(one.beat.channels[0], text);
    const { heard } = one.tell();
    one.hearAll();
    expect(await isOver(heard)).toBe(true);
  },
);

test('when Redis is lost nobody is waited for any more', async () => {
  const bus = createBeatBus();
  const [one, two] = [bus.join('one'), bus.join('two')];
  await meet(one, two);
  const { heard } = one.tell();
  one.beat.endCalls();
  expect(await isOver(heard)).toBe(true);
});
