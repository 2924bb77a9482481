// The acknowledgement barrier: a sender waits until no other member can serve an invalidated entry.
import type { MemberList, OtherMembers } from '../../../src/cache/link/member-list.js';
import { partial } from '../../support/partial.js';
import { describe, expect, test } from 'vitest';
import { LEASE_WAIT_MS } from '../../../src/cache/coherence/lease.js';
import {
  Acknowledgements,
  awaitAcknowledgements,
  expelAndWait,
} from '../../../src/cache/link/acknowledgements.js';
import { createManualClock, isSettled } from '../../support/manual-clock.js';

/** Publishes a change to members listed with the end of their membership. */
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
  /** Returns a copy of the current list, as a reply that arrives later. */
  const read = (): Promise<OtherMembers> => {
    const others = { ends: new Map(list), incompleteForMs: world.incompleteForMs };
    return world.arrives.then(() => others);
  };
  const memberList = partial<MemberList>({
    others: () => (world.isRead ? read() : Promise.reject(new Error('away'))),
    markLeaseEnded(member: string) {
      world.over.push(member);
    },
    expel(gone: readonly string[]) {
      world.expelled.push(...gone);
      return Promise.resolve();
    },
  });
  const call = isAcknowledged ? acknowledgements.begin() : '';
  const pass = (): Promise<string[] | undefined> =>
    awaitAcknowledgements(clock, memberList, acknowledgements, call);
  const expelAll = (late: string[]): Promise<boolean> => expelAndWait(clock, memberList, late);
  const acknowledge = (member: string): void => {
    acknowledgements.receive(member, [call]);
  };
  return { clock, world, list, pass, expelAll, acknowledge };
}

describe('acknowledgement barrier', () => {
  test('does not delay a single instance', async () => {
    expect(await isSettled(publish({}).pass())).toBe(true);
  });

  test('passes immediately when all members have acknowledged', async () => {
    const { world, pass, acknowledge } = publish({ a: '5', b: '5' });
    const passed = pass();
    acknowledge('a');
    expect(await isSettled(passed)).toBe(false);
    acknowledge('b');
    expect(await isSettled(passed)).toBe(true);
    expect(world.expelled).toEqual([]);
  });

  test('does not wait for a member that acknowledged before the list was read', async () => {
    const { pass, acknowledge } = publish({ a: '5' });
    acknowledge('a');
    expect(await isSettled(pass())).toBe(true);
  });

  test('waits until the lease of a member that does not renew has ended', async () => {
    const { clock, pass } = publish({ dead: '5' });
    const passed = pass();
    await clock.pass(LEASE_WAIT_MS - 1);
    expect(await isSettled(passed)).toBe(false);
    await clock.pass(1);
    expect(await isSettled(passed)).toBe(true);
  });

  test('passes when a late acknowledgement arrives, without expelling the member', async () => {
    const { clock, world, pass, acknowledge } = publish({ slow: '5' });
    const passed = pass();
    await clock.pass(LEASE_WAIT_MS / 2);
    acknowledge('slow');
    expect(await isSettled(passed)).toBe(true);
    expect(world.expelled).toEqual([]);
  });

  test('reports a member as late when it renews without acknowledging', async () => {
    const { clock, world, list, pass, acknowledge } = publish({ deaf: '5', good: '5', dead: '5' });
    const passed = pass();
    acknowledge('good');
    list.set('deaf', '6');
    list.set('good', '6');
    await clock.pass(LEASE_WAIT_MS);
    expect(await passed).toEqual(['deaf']);
    expect(world.over).toEqual(['dead']);
  });

  test('assumes that a member may have renewed while the reply with the member list was delayed', async () => {
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

  test('waits until the lease of an expelled member has ended', async () => {
    const { clock, world, expelAll } = publish({ deaf: '5' });
    const done = expelAll(['deaf']);
    expect(await isSettled(done)).toBe(false);
    await clock.pass(LEASE_WAIT_MS - 1);
    expect(await isSettled(done)).toBe(false);
    expect(world.expelled).toEqual(['deaf']);
    await clock.pass(1);
    expect(await isSettled(done)).toBe(true);
  });

  test('assumes that a member may have renewed before a different member removed it', async () => {
    const { clock, list, pass } = publish({ gone: '5' });
    const passed = pass();
    list.delete('gone');
    await clock.pass(LEASE_WAIT_MS);
    expect(await passed).toEqual(['gone']);
  });

  test('waits while the member list may be incomplete, even when it contains no other member', async () => {
    const { clock, world, pass } = publish({});
    world.incompleteForMs = 1000;
    const passed = pass();
    expect(await isSettled(passed)).toBe(false);
    await clock.pass(999);
    expect(await isSettled(passed)).toBe(false);
    await clock.pass(1);
    expect(await isSettled(passed)).toBe(true);
  });

  test('does not wait for a member that joins later', async () => {
    const { list, pass, acknowledge } = publish({ a: '5' });
    const passed = pass();
    expect(await isSettled(passed)).toBe(false);
    list.set('late', '6');
    acknowledge('a');
    expect(await isSettled(passed)).toBe(true);
  });

  test('waits one lease for an expelled member that has joined again, and does not report it as late', async () => {
    const { clock, world, list, pass } = publish({ deaf: '-4' });
    const passed = pass();
    list.set('deaf', '6');
    await clock.pass(LEASE_WAIT_MS - 1);
    expect(await isSettled(passed)).toBe(false);
    await clock.pass(1);
    expect(await passed).toEqual([]);
    expect(world.over).toEqual([]);
  });

  test('confirms nothing when the member list cannot be read', async () => {
    const { clock, world, pass, acknowledge } = publish({ a: '5' });
    world.isRead = false;
    acknowledge('a');
    const passed = pass();
    await clock.pass(LEASE_WAIT_MS - 1);
    expect(await isSettled(passed)).toBe(false);
    await clock.pass(1);
    expect(await passed).toBeUndefined();
  });

  test('assumes that a missing member may have renewed when the second list read fails', async () => {
    const { clock, world, pass } = publish({ a: '5' });
    const passed = pass();
    expect(await isSettled(passed)).toBe(false);
    world.isRead = false;
    await clock.pass(LEASE_WAIT_MS);
    expect(await passed).toEqual(['a']);
  });

  test('waits for all leases when no acknowledgement is requested, and expels no member', async () => {
    const { clock, world, pass } = publish({ a: '5' }, false);
    const passed = pass();
    await clock.pass(LEASE_WAIT_MS - 1);
    expect(await isSettled(passed)).toBe(false);
    await clock.pass(1);
    expect(await isSettled(passed)).toBe(true);
    expect(world.expelled).toEqual([]);
  });
});
