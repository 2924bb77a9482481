// Changes that an instance publishes as a coherence member: fences, and barriers after invalidations.
import { describe, expect, test } from 'vitest';
import { gate } from '../../support/gate.js';
import { openMember } from '../../support/linked-member.js';
import { isSettled, settled } from '../../support/manual-clock.js';

const KEY = '21.T1/KEY';

describe('a publication of a cache coherence member', () => {
  test('publishes nothing after its lease has ended until it joins the era again, even over the same connection', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(2100);
    world.isConnected = true;
    expect(await member.publish({ kind: 'forget', key: KEY })).toBeUndefined();
    await member.renewNow();
    expect(await member.publish({ kind: 'forget', key: KEY })).toBeDefined();
  });

  test('publishes nothing on a new server before it has joined the era', async () => {
    const { world, member } = openMember();
    await member.renewNow();
    world.run = 'another';
    world.asked.length = 0;
    expect(await member.publish({ kind: 'forget', key: KEY })).toBeUndefined();
    expect(world.asked).toEqual([]);
    await member.renewNow();
    expect(world.asked[0]).toBe('enter from era of run');
    expect(await member.publish({ kind: 'forget', key: KEY })).toBeDefined();
  });

  test('does not confirm a barrier after a server change, because the publication may be lost', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    const published = await member.publish({ kind: 'forget', key: KEY });
    world.run = 'another';
    await clock.pass(3000);
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
    expect(await published?.acknowledged).toBe(false);
  });

  test('waits for no barrier when the server has changed before its reply', async () => {
    const { world, member } = openMember();
    await member.renewNow();
    const { opened, open: pass } = gate();
    world.changed = opened;
    const publishing = member.publish({ kind: 'forget', key: KEY });
    await settled();
    world.run = 'another';
    pass();
    const published = await publishing;
    expect(await isSettled(published!.acknowledged)).toBe(true);
    expect(await published?.acknowledged).toBe(false);
  });

  test('confirms a barrier on a server of which it is still a member', async () => {
    const { clock, member } = openMember();
    await member.renewNow();
    const published = await member.publish({ kind: 'forget', key: KEY });
    await clock.pass(3000);
    expect(await published?.acknowledged).toBe(true);
  });

  test('does not confirm a barrier after its lease has ended, even during a renewal', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    const published = await member.publish({ kind: 'forget', key: KEY });
    world.isSilent = true;
    await clock.pass(2480);
    expect(member.leaseLeftMs()).toBe(0);
    expect(await isSettled(published!.acknowledged)).toBe(true);
    expect(await published?.acknowledged).toBe(false);
  });

  test('waits in a barrier on a new server for members that are not listed', async () => {
    const { world, clock, member } = openMember();
    world.isListKnown = true;
    await member.renewNow();
    const before = await member.publish({ kind: 'forget', key: KEY });
    expect(await isSettled(before!.acknowledged)).toBe(true);
    world.run = 'another';
    await member.renewNow();
    const after = await member.publish({ kind: 'forget', key: KEY });
    expect(await isSettled(after!.acknowledged)).toBe(false);
    await clock.pass(3000);
    expect(await after?.acknowledged).toBe(true);
  });

  test('raises no fence before its first lease', async () => {
    const { world, member } = openMember();
    const { opened, open: pass } = gate();
    world.renewed = opened;
    const renewed = member.renewNow();
    await settled();
    const raised = member.publish({ kind: 'raise', key: KEY, fence: '1', lifeMs: 60_000 });
    pass();
    expect(await raised).toBeUndefined();
    await renewed;
    expect(world.asked).not.toContain('change');
  });

  test('raises a fence only if its lease is still valid when the reply arrives', async () => {
    const { world, clock, member } = openMember();
    await member.renewNow();
    let reply = (): void => undefined;
    world.changed = new Promise((resolve) => (reply = resolve));
    const raised = member.publish({ kind: 'raise', key: KEY, fence: '1', lifeMs: 60_000 });
    world.isConnected = false;
    // Only the wall clock jumps, as after the machine was paused, and no timer has ended the wait.
    clock.setBy(5000);
    reply();
    expect(await raised).toBeUndefined();
  });
});
