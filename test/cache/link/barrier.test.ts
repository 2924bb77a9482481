// A sender waits until no other member answers with what its change invalidates.
import { expect, test } from 'vitest';
import { LEASE_WAIT_MS } from '../../../src/cache/coherence/lease.js';
import { Acknowledgements, awaitAcknowledgements, expel } from '../../../src/cache/link/acknowledgements.js';
import type { OtherMembers } from '../../../src/cache/link/member-list.js';
import { createManualClock, isSettled } from '../../support/manual-clock.js';

/** A change that was just published among members, which are listed with the end of their membership. */
function publish(listed: Record<string, string>, isAcknowledged = true) {
  const clock = createManualClock();
  const acknowledgements = new Acknowledgements();
  const list = new Map(Object.entries(listed));
  const world = {
    isRead: true,
    arrives: Promise.resolve(),
    incompleteForMs: 0,
    over: [] as string[],
    expelled: [] as string[],
  };
  /** As it is now; the reply arrives later. */
  const read = (): Promise<OtherMembers> => {
    const others = { ends: new Map(list), incompleteForMs: world.incompleteForMs };
    return world.arrives.then(() => others);
  };
  const memberList = {
    others: () => (world.isRead ? read() : Promise.reject(new Error('away'))),
    markLeaseEnded(member: string) {
      world.over.push(member);
    },
    expel(gone: readonly string[]) {
      world.expelled.push(...gone);
      return Promise.resolve();
    },
  };
  const call = isAcknowledged ? acknowledgements.begin() : '';
  const deps = { clock, list: memberList, acknowledgements };
  const pass = (): Promise<string[] | undefined> => awaitAcknowledgements(deps, call);
  const expelAll = (late: string[]): Promise<boolean> => expel(deps, late);
  const acknowledge = (member: string): void => {
    acknowledgements.receive(member, [call]);
  };
  return { clock, world, list, pass, expelAll, acknowledge };
}

test('a single instance does not wait', async () => {
  expect(await isSettled(publish({}).pass())).toBe(true);
});

test('it is over at once when all members have acknowledged', async () => {
  const { world, pass, acknowledge } = publish({ a: '5', b: '5' });
  const passed = pass();
  acknowledge('a');
  expect(await isSettled(passed)).toBe(false);
  acknowledge('b');
  expect(await isSettled(passed)).toBe(true);
  expect(world.expelled).toEqual([]);
});

test('a member that has acknowledged before the list was read is not waited for', async () => {
  const { pass, acknowledge } = publish({ a: '5' });
  acknowledge('a');
  expect(await isSettled(pass())).toBe(true);
});

test('a member that does not renew is waited for until its lease is over', async () => {
  const { clock, pass } = publish({ dead: '5' });
  const passed = pass();
  await clock.pass(LEASE_WAIT_MS - 1);
  expect(await isSettled(passed)).toBe(false);
  await clock.pass(1);
  expect(await isSettled(passed)).toBe(true);
});

test('a member that acknowledges late is waited for no longer, and is not expelled', async () => {
  const { clock, world, pass, acknowledge } = publish({ slow: '5' });
  const passed = pass();
  await clock.pass(LEASE_WAIT_MS / 2);
  acknowledge('slow');
  expect(await isSettled(passed)).toBe(true);
  expect(world.expelled).toEqual([]);
});

test('a member that renews and does not acknowledge is late', async () => {
  const { clock, world, list, pass, acknowledge } = publish({ deaf: '5', good: '5', dead: '5' });
  const passed = pass();
  acknowledge('good');
  list.set('deaf', '6');
  list.set('good', '6');
  await clock.pass(LEASE_WAIT_MS);
  expect(await passed).toEqual(['deaf']);
  expect(world.over).toEqual(['dead']);
});

test('a member may have renewed since a list that arrived late was read', async () => {
  const { clock, world, list, pass } = publish({ deaf: '5' });
  let arrive = (): void => undefined;
  world.arrives = new Promise((resolve) => (arrive = resolve));
  const passed = pass();
  await clock.pass(LEASE_WAIT_MS);
  arrive();
  expect(await isSettled(passed)).toBe(false);
  list.set('deaf', '6');
  await clock.pass(LEASE_WAIT_MS);
  expect(await passed).toEqual(['deaf']);
});

test('a member that is expelled is waited for until its lease is over', async () => {
  const { clock, world, expelAll } = publish({ deaf: '5' });
  const done = expelAll(['deaf']);
  expect(await isSettled(done)).toBe(false);
  await clock.pass(LEASE_WAIT_MS - 1);
  expect(await isSettled(done)).toBe(false);
  expect(world.expelled).toEqual(['deaf']);
  await clock.pass(1);
  expect(await isSettled(done)).toBe(true);
});

test('a member that another one removed meanwhile may have renewed', async () => {
  const { clock, list, pass } = publish({ gone: '5' });
  const passed = pass();
  list.delete('gone');
  await clock.pass(LEASE_WAIT_MS);
  expect(await passed).toEqual(['gone']);
});

test('an incomplete member list is waited out, even when all listed members acknowledged', async () => {
  const { clock, world, pass } = publish({});
  world.incompleteForMs = 1000;
  const passed = pass();
  expect(await isSettled(passed)).toBe(false);
  await clock.pass(999);
  expect(await isSettled(passed)).toBe(false);
  await clock.pass(1);
  expect(await isSettled(passed)).toBe(true);
});

test('a member that joins later is not waited for', async () => {
  const { list, pass, acknowledge } = publish({ a: '5' });
  const passed = pass();
  expect(await isSettled(passed)).toBe(false);
  list.set('late', '6');
  acknowledge('a');
  expect(await isSettled(passed)).toBe(true);
});

test('a member that had been expelled and joins again has read what it missed', async () => {
  const { clock, world, list, pass } = publish({ deaf: '-4' });
  const passed = pass();
  list.set('deaf', '6');
  await clock.pass(LEASE_WAIT_MS - 1);
  expect(await isSettled(passed)).toBe(false);
  await clock.pass(1);
  expect(await passed).toEqual([]);
  expect(world.over).toEqual([]);
});

test('when the members cannot be read it is not known who has received it', async () => {
  const { clock, world, pass, acknowledge } = publish({ a: '5' });
  world.isRead = false;
  acknowledge('a');
  const passed = pass();
  await clock.pass(LEASE_WAIT_MS - 1);
  expect(await isSettled(passed)).toBe(false);
  await clock.pass(1);
  expect(await passed).toBeUndefined();
});

test('when they cannot be read the second time, a member that is missing may have renewed', async () => {
  const { clock, world, pass } = publish({ a: '5' });
  const passed = pass();
  expect(await isSettled(passed)).toBe(false);
  world.isRead = false;
  await clock.pass(LEASE_WAIT_MS);
  expect(await passed).toEqual(['a']);
});

test('without a call the lease is waited for, and nobody is expelled', async () => {
  const { clock, world, pass } = publish({ a: '5' }, false);
  const passed = pass();
  await clock.pass(LEASE_WAIT_MS - 1);
  expect(await isSettled(passed)).toBe(false);
  await clock.pass(1);
  expect(await isSettled(passed)).toBe(true);
  expect(world.expelled).toEqual([]);
});
