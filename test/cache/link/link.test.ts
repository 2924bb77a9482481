// The link of an instance to the others, on a scripted Redis that records the order of the calls.
import { describe, expect, test } from 'vitest';
import type { Message } from '../../../src/cache/coherence/message.js';
import { PendingInvalidations } from '../../../src/cache/coherence/pending-invalidations.js';
import { RedisLink } from '../../../src/cache/link/link.js';
import { createLinkRedis } from '../../support/link-redis.js';
import { gate } from '../../support/gate.js';
import { createManualClock, isSettled, settled } from '../../support/manual-clock.js';

const KEY = '21.T1/KEY';

function open() {
  const { commands, world } = createLinkRedis();
  const clock = createManualClock();
  const pending = new PendingInvalidations();
  const delivered: Message[] = [];
  const leases: boolean[] = [];
  const link = new RedisLink({
    commands,
    clock,
    pending,
    deliver(message) {
      delivered.push(message);
    },
    onRenewed() {
      leases.push(link.leaseLeftMs() > 0);
    },
  });
  return { world, clock, pending, delivered, leases, link };
}

/** Without repetitions in a row: all numbers are read by several scripts. */
const uniqueRuns = (calls: readonly string[]): string[] => calls.filter((call, at) => call !== calls[at - 1]);

test('the first lease begins with a ping from after it was listed, and the numbers are read in between', async () => {
  const { world, link } = open();
  await link.renewNow();
  // The first renewal gives the clock of Redis.
  expect(uniqueRuns(world.asked)).toEqual(['enter from none', 'renew', 'numbers', 'ping', 'renew']);
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
});

test('a member whose lease has ended reads the numbers again, over the same connection, before it has one', async () => {
  const { world, clock, delivered, link } = open();
  await link.renewNow();
  world.isConnected = false;
  await clock.pass(2100);
  world.isConnected = true;
  world.number = '2';
  world.asked.length = 0;
  delivered.length = 0;
  await link.renewNow();
  expect(uniqueRuns(world.asked)).toEqual(['enter from era of run', 'renew', 'numbers', 'ping', 'renew']);
  expect(delivered).toContainEqual({ kind: 'distrust' });
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
});

test('a member whose lease ends while its renewal is under way reads the numbers before it has one', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  await clock.pass(100);
  world.asked.length = 0;
  const renewed = link.renewNow();
  // The wall clock alone: the machine was paused.
  clock.setBy(5000);
  await renewed;
  expect(world.asked).toEqual(['ping', 'renew']);
  expect(link.leaseLeftMs()).toBe(0);
  await link.renewNow();
  expect(world.asked).toContain('numbers');
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
});

test('a member whose lease has ended publishes nothing before it has entered the era again, over the same connection too', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  world.isConnected = false;
  await clock.pass(2100);
  world.isConnected = true;
  expect(await link.publish({ kind: 'forget', key: KEY })).toBeUndefined();
  await link.renewNow();
  expect(await link.publish({ kind: 'forget', key: KEY })).toBeDefined();
});

test('on another server a member publishes nothing before it has entered the era', async () => {
  const { world, link } = open();
  await link.renewNow();
  world.run = 'another';
  world.asked.length = 0;
  expect(await link.publish({ kind: 'forget', key: KEY })).toBeUndefined();
  expect(world.asked).toEqual([]);
  await link.renewNow();
  expect(world.asked[0]).toBe('enter from era of run');
  expect(await link.publish({ kind: 'forget', key: KEY })).toBeDefined();
});

test('a barrier confirms nothing when another server was entered during the wait: the publication may be lost', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  const published = await link.publish({ kind: 'forget', key: KEY });
  world.run = 'another';
  await clock.pass(3000);
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
  expect(await published?.acknowledged).toBe(false);
});

test('a barrier confirms a publication on the server that this member has still entered', async () => {
  const { clock, link } = open();
  await link.renewNow();
  const published = await link.publish({ kind: 'forget', key: KEY });
  await clock.pass(3000);
  expect(await published?.acknowledged).toBe(true);
});

test('a barrier confirms nothing after the end of the lease, also while a renewal is under way', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  const published = await link.publish({ kind: 'forget', key: KEY });
  world.isSilent = true;
  await clock.pass(2480);
  expect(link.leaseLeftMs()).toBe(0);
  expect(await isSettled(published!.acknowledged)).toBe(true);
  expect(await published?.acknowledged).toBe(false);
});

test('a barrier waits for members that are not listed, on a server that its member has just come to', async () => {
  const { world, clock, link } = open();
  world.isListKnown = true;
  await link.renewNow();
  const before = await link.publish({ kind: 'forget', key: KEY });
  expect(await isSettled(before!.acknowledged)).toBe(true);
  world.run = 'another';
  await link.renewNow();
  const after = await link.publish({ kind: 'forget', key: KEY });
  expect(await isSettled(after!.acknowledged)).toBe(false);
  await clock.pass(3000);
  expect(await after?.acknowledged).toBe(true);
});

test('a member that has come to another server has a new lease there, and removes no lapsed members yet', async () => {
  const { world, clock, link } = open();
  await clock.pass(4000);
  expect(world.leases.at(-1)).toBe(2);
  world.run = 'another';
  await link.renewNow();
  expect(world.leases.at(-1)).toBe(1);
  await clock.pass(4000);
  expect(world.leases.at(-1)).toBe(2);
});

test.each([
  ['begins the next era, which the server cannot know', false, 2],
  ['stays in the era when another member has a lease', true, 1],
])('a member that has waited for a lapsed one in vain %s', async (_what, isVouched, entries) => {
  const { world, clock, link } = open();
  world.lapsed = ['gone'];
  world.isVouched = isVouched;
  await clock.pass(4000);
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
  expect(world.asked.filter((call) => call.startsWith('enter'))).toHaveLength(entries);
});

test('a listed member gets its lease with each ping', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  const before = link.leaseLeftMs();
  await clock.pass(100);
  world.asked.length = 0;
  await link.renewNow();
  expect(world.asked).toEqual(['ping', 'renew']);
  expect(link.leaseLeftMs()).toBe(before);
});

test('an instance is joining until its first renewal, and not again when its lease has ended', async () => {
  const { world, clock, link } = open();
  expect(link.isJoining()).toBe(true);
  await link.renewNow();
  world.isConnected = false;
  await clock.pass(3000);
  expect([link.leaseLeftMs(), link.isJoining()]).toEqual([0, false]);
});

test('an expelled member is joining again until it is listed', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  world.was = 'absent';
  await clock.pass(500);
  expect([link.leaseLeftMs(), link.isJoining()]).toEqual([0, true]);
  await clock.pass(500);
  expect([link.leaseLeftMs() > 0, link.isJoining()]).toEqual([true, false]);
});

test('an instance is joining as long as its connection is being opened, and for four failures more', async () => {
  const { world, clock, link } = open();
  world.isConnected = false;
  await clock.pass(20_000);
  expect(link.isJoining()).toBe(true);
  world.hasFailed = true;
  await clock.pass(1600);
  expect(link.isJoining()).toBe(true);
  await clock.pass(500);
  expect(link.isJoining()).toBe(false);
});

test('an instance that Redis does not answer four times is not joining any more', async () => {
  const { world, clock, link } = open();
  world.isSilent = true;
  await clock.pass(7000);
  expect(link.isJoining()).toBe(true);
  await clock.pass(3000);
  expect(link.isJoining()).toBe(false);
});

test('a new lease is reported also when the end of the last one was not', async () => {
  const { world, clock, leases, link } = open();
  await clock.pass(100);
  await link.renewNow();
  world.isConnected = false;
  await clock.pass(2100);
  expect(link.leaseLeftMs()).toBe(0);
  world.isConnected = true;
  leases.length = 0;
  await link.renewNow();
  expect(leases).toEqual([true]);
});

test('a return is awaited from the last renewal that was sent, with or without a reply', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  const returned = link.waitForReturn(1500);
  world.isSilent = true;
  await clock.pass(1600);
  expect(await isSettled(returned)).toBe(false);
  await clock.pass(500);
  expect(await returned).toBe(false);
});

test('a return is awaited from the start where no renewal was sent yet', async () => {
  const { world, clock, link } = open();
  world.isConnected = false;
  const returned = link.waitForReturn(1500);
  await clock.pass(1400);
  expect(await isSettled(returned)).toBe(false);
  await clock.pass(200);
  expect(await returned).toBe(false);
});

test('a fence counts only while a lease runs, also when its reply arrives', async () => {
  const { world, clock, link } = open();
  await link.renewNow();
  let reply = (): void => undefined;
  world.changed = new Promise((resolve) => (reply = resolve));
  const raised = link.publish({ kind: 'raise', key: KEY, fence: '1', lifeMs: 60_000 });
  world.isConnected = false;
  // The wall clock alone: the machine was paused, so no timer has ended the wait.
  clock.setBy(5000);
  reply();
  expect(await raised).toBeUndefined();
});

test('a message connection that is ready too late is closed, not kept beside the next one', async () => {
  const { world, clock, link } = open();
  const { opened, open: release } = gate();
  world.ready = opened;
  void link.renewNow();
  await clock.pass(2100);
  world.ready = Promise.resolve();
  await link.renewNow();
  release();
  await settled();
  expect([world.subscriptions, link.leaseLeftMs() > 0]).toEqual([1, true]);
});

describe('a member that is closed', () => {
  test('while it subscribes keeps no connection, and does not join', async () => {
    const { world, link } = open();
    const { opened, open: release } = gate();
    world.ready = opened;
    const renewed = link.renewNow();
    await link.close();
    release();
    await renewed;
    await settled();
    expect([world.subscriptions, world.asked]).toEqual([0, ['leave']]);
  });

  test('between its first two renewals does not join after it has left', async () => {
    const { world, link } = open();
    const { opened, open: release } = gate();
    world.renewed = opened;
    const renewed = link.renewNow();
    await settled();
    await link.close();
    release();
    await renewed;
    expect(world.asked).toEqual(['enter from none', 'renew', 'leave']);
  });

  test('while it renews has no lease, and reports no failure', async () => {
    const { world, link } = open();
    await link.renewNow();
    const { opened, open: release } = gate();
    world.renewed = opened;
    world.asked.length = 0;
    const renewed = link.renewNow();
    await settled();
    await link.close();
    release();
    await renewed;
    await link.renewNow();
    expect([link.leaseLeftMs(), world.asked]).toEqual([0, ['ping', 'renew', 'leave']]);
  });
});

test('what is pending is reported before the renewal', async () => {
  const { world, pending, link } = open();
  pending.add({ kind: 'forget', key: KEY });
  await link.renewNow();
  expect(world.asked.slice(0, 3)).toEqual(['enter from none', 'change', 'renew']);
  expect(pending.size).toBe(0);
});

test('what is reported is applied here too: it may have been copied from Redis before', async () => {
  const { pending, delivered, link } = open();
  pending.add({ kind: 'forget', key: KEY });
  await link.renewNow();
  expect(delivered).toContainEqual({ kind: 'forget', key: KEY });
});

test('a member that was removed distrusts everything it keeps before it has a lease again', async () => {
  const { world, clock, delivered, link } = open();
  await link.renewNow();
  delivered.length = 0;
  world.was = 'absent';
  await clock.pass(500);
  expect(delivered).toContainEqual({ kind: 'distrust' });
});

test('after a lease has ended, members that are lapsed are waited for, but not for ever', async () => {
  const { world, clock, link } = open();
  world.lapsed = ['gone'];
  await clock.pass(2000);
  expect(link.leaseLeftMs()).toBe(0);
  await clock.pass(2000);
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
});

test('a fence of a lapsed member that arrives late leaves stale what is kept under it', async () => {
  const { world, clock, delivered, link } = open();
  world.lapsed = ['gone'];
  await clock.pass(4000);
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
  delivered.length = 0;
  world.send(`9 gone - raise gone/0.1 60000 ${KEY}`);
  await clock.pass(500);
  expect(delivered).toContainEqual({ kind: 'soften', key: KEY });
});

test('the fences of a lapsed member leave stale what is kept under them, once', async () => {
  const { world, clock, delivered, link } = open();
  await clock.pass(1000);
  const raise = `9 gone - raise gone/0.1 60000 ${KEY}`;
  expect(link.leaseLeftMs()).toBeGreaterThan(0);
  world.lapsed = ['gone'];
  delivered.length = 0;
  world.send(raise);
  await clock.pass(1500);
  // Once at once, and once more with its publication to Redis.
  expect(delivered.filter(({ kind }) => kind === 'soften')).toEqual([
    { kind: 'soften', key: KEY },
    { kind: 'soften', key: KEY },
  ]);
});
