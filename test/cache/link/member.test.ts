// An instance as a coherence member, with a scripted Redis that records the order of calls.
import { describe, expect, test } from 'vitest';
import { formatChange } from '../../../src/cache/coherence/message.js';
import { MemberList } from '../../../src/cache/link/member-list.js';
import { NOT_PERMITTED } from '../../../src/cache/redis/coherence-scripts.js';
import { gate } from '../../support/gate.js';
import { createLinkRedis } from '../../support/link-redis.js';
import { openMember } from '../../support/linked-member.js';
import { createManualClock, isSettled, settled } from '../../support/manual-clock.js';

const KEY = '21.T1/KEY';
const raise = formatChange(
  { kind: 'raise', key: KEY, fence: 'gone/0.1', lifeMs: 60_000 },
  { member: 'gone', call: '' },
);

/** Removes consecutive duplicates, because several scripts read all numbers. */
const uniqueRuns = (calls: readonly string[]): string[] => calls.filter((call, at) => call !== calls[at - 1]);

describe('cache coherence member', () => {
  test('acknowledges a change of another member once everything that concerns it here is done', async () => {
    const applied = gate();
    const { world, delivered, member } = openMember(applied.opened);
    await member.renewNow();
    const change = { kind: 'changed', key: KEY, fence: 'other/1' } as const;
    world.send(`2 ${formatChange(change, { member: 'other', call: '1' })}`);
    await settled();
    expect(delivered).toContainEqual(change);
    expect(world.asked).not.toContain('acknowledge');
    applied.open();
    await settled();
    expect(world.asked.at(-1)).toBe('acknowledge');
  });

  test('obtains its first lease from a ping sent after it was listed and had read the sequence numbers', async () => {
    const { world, member } = openMember();
    await member.renewNow();
    // The first renewal reads the Redis clock.
    expect(uniqueRuns(world.asked)).toEqual(['enter from none', 'renew', 'numbers', 'ping', 'renew']);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });

  test('reads the sequence numbers again before a new lease, even over the same connection', async () => {
    const { world, clock, delivered, member } = openMember();
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(2100);
    world.isConnected = true;
    world.number = '2';
    world.asked.length = 0;
    delivered.length = 0;
    await member.renewNow();
    expect(uniqueRuns(world.asked)).toEqual(['enter from era of run', 'renew', 'numbers', 'ping', 'renew']);
    expect(delivered).toContainEqual({ kind: 'distrust' });
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });

  test('reads the sequence numbers before a new lease when the old lease ends during a renewal', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    await clock.pass(100);
    world.asked.length = 0;
    const renewed = member.renewNow();
    // Only the wall clock jumps, as after the machine was paused.
    clock.setBy(5000);
    await renewed;
    expect(world.asked).toEqual(['ping', 'renew']);
    expect(member.leaseLeftMs()).toBe(0);
    await member.renewNow();
    expect(world.asked).toContain('numbers');
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });

  test('obtains a new lease on a new server without removing lapsed members', async () => {
    const { world, clock, member } = openMember();
    await clock.pass(4000);
    expect(world.leases.at(-1)).toBe(2);
    world.run = 'another';
    await member.renewNow();
    expect(world.leases.at(-1)).toBe(1);
    await clock.pass(2000);
    expect(world.leases.at(-1)).toBe(1);
    await clock.pass(2000);
    expect(world.leases.at(-1)).toBe(2);
  });

  test.each([
    ['starts an era unknown to the server', false, 2],
    ['stays in the era of a different leased member', true, 1],
  ])('%s when a lapsed member does not return in time', async (_what, isVouched, entries) => {
    const { world, clock, member } = openMember();
    world.lapsed = ['gone'];
    world.isVouched = isVouched;
    await clock.pass(4000);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
    expect(world.asked.filter((call) => call.startsWith('enter'))).toHaveLength(entries);
  });

  test('starts no era after a late renewal, whose reply has no list', async () => {
    const { world, clock, member } = openMember();
    Object.assign(world, { lapsed: ['gone'], listCreatedAt: '1' });
    await clock.pass(1000);
    world.was = 'late';
    await clock.pass(3500);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
    expect(world.asked.filter((call) => call.startsWith('enter'))).toHaveLength(1);
  });

  test('starts an era unknown to the server when the list of a lapsed member is lost before its lease', async () => {
    const { world, clock, member } = openMember();
    world.lapsed = ['gone'];
    await clock.pass(1500);
    Object.assign(world, { lapsed: [], was: 'absent', listCreatedAt: '1', listAgeMs: 0 });
    await clock.pass(1000);
    expect(member.leaseLeftMs()).toBe(0);
    await clock.pass(1500);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
    const entries = world.asked.filter((call) => call.startsWith('enter'));
    expect(entries.slice(0, 2)).toEqual(['enter from none', 'enter from era of run']);
    expect(entries).toHaveLength(3);
  });

  test('neither waits nor starts an era for a member that lapsed during its lease when the list is lost', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    world.lapsed = ['gone'];
    await clock.pass(1000);
    Object.assign(world, { lapsed: [], was: 'absent', listCreatedAt: '1', listAgeMs: 0 });
    await clock.pass(500);
    expect(member.leaseLeftMs()).toBe(0);
    await clock.pass(500);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
    const entries = world.asked.filter((call) => call.startsWith('enter'));
    expect(entries).toEqual(['enter from none', 'enter from era of run']);
  });

  test('renews its lease with each ping while listed', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    const before = member.leaseLeftMs();
    await clock.pass(100);
    world.asked.length = 0;
    await member.renewNow();
    expect(world.asked).toEqual(['ping', 'renew']);
    expect(member.leaseLeftMs()).toBe(before);
  });

  test('gets no lease from a renewal that Redis ran too late, which did not extend its membership', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    await clock.pass(400);
    const before = member.leaseLeftMs();
    world.was = 'late';
    await member.renewNow();
    expect(member.leaseLeftMs()).toBe(before);
  });

  test('is joining until its first renewal, but not after its lease has ended', async () => {
    const { world, clock, member } = openMember();
    expect(member.isJoining()).toBe(true);
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(3000);
    expect([member.leaseLeftMs(), member.isJoining()]).toEqual([0, false]);
  });

  test('is joining again after an expulsion, until it is listed', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    world.was = 'absent';
    await clock.pass(500);
    expect([member.leaseLeftMs(), member.isJoining()]).toEqual([0, true]);
    await clock.pass(500);
    expect([member.leaseLeftMs() > 0, member.isJoining()]).toEqual([true, false]);
  });

  test('is joining while its connection opens, and during the next four failures', async () => {
    const { world, clock, member } = openMember();
    world.isConnected = false;
    await clock.pass(20_000);
    expect(member.isJoining()).toBe(true);
    world.hasFailed = true;
    await clock.pass(1600);
    expect(member.isJoining()).toBe(true);
    await clock.pass(500);
    expect(member.isJoining()).toBe(false);
  });

  test('stops joining after four unanswered requests to Redis', async () => {
    const { world, clock, member } = openMember();
    world.isSilent = true;
    await clock.pass(7000);
    expect(member.isJoining()).toBe(true);
    await clock.pass(3000);
    expect(member.isJoining()).toBe(false);
  });

  test('reports a new lease even when the end of the last lease was not reported', async () => {
    const { world, clock, leases, member } = openMember();
    await clock.pass(100);
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(2100);
    expect(member.leaseLeftMs()).toBe(0);
    world.isConnected = true;
    leases.length = 0;
    await member.renewNow();
    expect(leases).toEqual([true]);
  });

  test('measures the wait for Redis from the last renewal sent, with or without a reply', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    const returned = member.waitForReturn(1500);
    world.isSilent = true;
    await clock.pass(1600);
    expect(await isSettled(returned)).toBe(false);
    await clock.pass(500);
    expect(await returned).toBe(false);
  });

  test('measures the wait for Redis from the last renewal that was not refused: a right may be missing for days', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    const returned = member.waitForReturn(1500);
    world.isRefused = true;
    await clock.pass(1600);
    expect(await isSettled(returned)).toBe(true);
    expect(await returned).toBe(false);
  });

  test('counts a renewal that Redis may have executed although an earlier one is refused after it', async () => {
    const { commands, world } = createLinkRedis();
    const clock = createManualClock();
    const list = new MemberList(commands, clock, 'one');
    const renewal = { joins: false, lease: 'new' } as const;
    await list.renew(renewal);
    const late = gate();
    world.isRefused = true;
    world.renewed = late.opened;
    const refused = list.renew(renewal);
    await clock.pass(600);
    world.isSilent = true;
    void list.renew(renewal);
    late.open();
    await expect(refused).rejects.toThrow(NOT_PERMITTED);
    expect(list.renewedAt).toBe(600);
  });

  test('reads the clock of each server run before it tells the send time of a renewal by it', async () => {
    const { commands, world } = createLinkRedis();
    const list = new MemberList(commands, createManualClock(), 'one');
    const renewal = { joins: false, lease: 'new' } as const;
    world.redisTime = '7000';
    await list.renew(renewal);
    world.run = 'other';
    world.redisTime = '3000';
    await list.renew(renewal);
    await list.renew(renewal);
    expect(world.sendTimes).toEqual([0, 7000, 0, 3000, 3000]);
  });

  test('measures the wait for Redis from its start when no renewal was sent', async () => {
    const { world, clock, member } = openMember();
    world.isConnected = false;
    const returned = member.waitForReturn(1500);
    await clock.pass(1400);
    expect(await isSettled(returned)).toBe(false);
    await clock.pass(200);
    expect(await returned).toBe(false);
  });

  test('closes a message connection that becomes ready too late', async () => {
    const { world, clock, member } = openMember();
    const { opened, open: pass } = gate();
    world.ready = opened;
    void member.renewNow();
    await clock.pass(2100);
    world.ready = Promise.resolve();
    await member.renewNow();
    pass();
    await settled();
    expect([world.subscriptions, member.leaseLeftMs() > 0]).toEqual([1, true]);
  });

  describe('when closed', () => {
    test('has no connection and does not join if it was subscribing', async () => {
      const { world, member } = openMember();
      const { opened, open: pass } = gate();
      world.ready = opened;
      const renewed = member.renewNow();
      await member.close();
      pass();
      await renewed;
      await settled();
      expect([world.subscriptions, world.asked]).toEqual([0, ['leave']]);
    });

    test('stays listed if it could not publish a change, which its lapse then reveals', async () => {
      const { world, clock, pending, member } = openMember();
      await member.renewNow();
      world.changed = gate().opened;
      pending.add({ kind: 'forget', key: KEY });
      const closed = member.close();
      await clock.pass(5000);
      await closed;
      expect(world.asked).not.toContain('leave');
    });

    test('does not join again if it was between its first two renewals', async () => {
      const { world, member } = openMember();
      const { opened, open: pass } = gate();
      world.renewed = opened;
      const renewed = member.renewNow();
      await settled();
      await member.close();
      pass();
      await renewed;
      expect(world.asked).toEqual(['enter from none', 'renew', 'leave']);
    });

    test('has no lease and reports no failure if it was renewing', async () => {
      const { world, leases, member } = openMember();
      await member.renewNow();
      const { opened, open: pass } = gate();
      world.renewed = opened;
      world.asked.length = 0;
      const renewed = member.renewNow();
      await settled();
      leases.length = 0;
      await member.close();
      pass();
      await renewed;
      await member.renewNow();
      expect([member.leaseLeftMs(), world.asked, leases]).toEqual([0, ['ping', 'renew', 'leave'], []]);
    });
  });

  test('publishes pending invalidations before the renewal', async () => {
    const { world, pending, member } = openMember();
    pending.add({ kind: 'forget', key: KEY });
    await member.renewNow();
    expect(world.asked.slice(0, 3)).toEqual(['enter from none', 'change', 'renew']);
    expect(pending.size).toBe(0);
  });

  test('applies pending invalidations locally as well, because memory may contain copies from Redis', async () => {
    const { pending, delivered, member } = openMember();
    pending.add({ kind: 'forget', key: KEY });
    await member.renewNow();
    expect(delivered).toContainEqual({ kind: 'forget', key: KEY });
  });

  test('ends an outage once everything that concerns a pending invalidation here is done', async () => {
    const applied = gate();
    const { pending, member } = openMember(applied.opened);
    const returned = member.waitForReturn(60_000);
    pending.add({ kind: 'forget', key: KEY });
    void member.renewNow();
    expect(await isSettled(returned)).toBe(false);
    applied.open();
    expect(await returned).toBe(true);
  });

  test('reads the bans again after it has missed one', async () => {
    const { world, member } = openMember();
    await member.renewNow();
    world.asked.length = 0;
    const ban = { kind: 'ban', prefix: '21.T1', isSoft: false, number: 0 } as const;
    world.send(`9 ${formatChange(ban, { member: 'other', call: '' })}`);
    await member.renewNow();
    expect(world.asked[0]).toBe('enter from era of run');
  });

  test('marks all entries stale when it has been removed from the member list', async () => {
    const { world, clock, delivered, member } = openMember();
    await member.renewNow();
    delivered.length = 0;
    world.was = 'absent';
    await clock.pass(500);
    expect(delivered).toContainEqual({ kind: 'distrust' });
  });

  test('waits for lapsed members for a bounded time after its lease has ended', async () => {
    const { world, clock, member } = openMember();
    world.lapsed = ['gone'];
    await clock.pass(2000);
    expect(member.leaseLeftMs()).toBe(0);
    await clock.pass(2000);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });

  test.each([
    ['waits before its first lease', true, 0],
    ['does not wait', false, 2000],
  ])('%s for members that a recreated list may lack (cluster: %s)', async (_what, isCluster, leftMs) => {
    const { world, clock, member } = openMember();
    world.isCluster = isCluster;
    // The clock of Redis may have been set ahead by a second since.
    world.listAgeMs = 3000;
    await member.renewNow();
    expect(member.leaseLeftMs()).toBe(leftMs);
    // The members that it lacks have reported, or their leases have ended.
    await clock.pass(500);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });

  test('marks an entry stale when a fence from a lapsed member arrives late', async () => {
    const { world, clock, delivered, member } = openMember();
    world.lapsed = ['gone'];
    await clock.pass(4000);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
    delivered.length = 0;
    world.send(`9 ${raise}`);
    await clock.pass(500);
    expect(delivered).toContainEqual({ kind: 'soften', key: KEY });
  });

  test('marks an entry under a fence of a lapsed member stale once directly, and once through Redis', async () => {
    const { world, clock, delivered, member } = openMember();
    await clock.pass(1000);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
    world.lapsed = ['gone'];
    delivered.length = 0;
    world.send(`9 ${raise}`);
    await clock.pass(1500);
    // The entry is marked stale immediately, and again by the publication to Redis.
    expect(delivered.filter(({ kind }) => kind === 'soften')).toEqual([
      { kind: 'soften', key: KEY },
      { kind: 'soften', key: KEY },
    ]);
  });
});
