// A member whose Redis may have hung while a different master served, with a scripted Redis.
import { describe, expect, test } from 'vitest';
import { openMember } from '../../support/linked-member.js';

describe('member without a lease', () => {
  test('reads the numbers only after Redis has run the renewal that joins', async () => {
    const opened = openMember();
    const { world, clock, member } = opened;
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(30_000);
    world.isConnected = true;
    Object.assign(world, { was: 'late', asked: [] });
    await member.renewNow();
    expect(world.asked).not.toContain('numbers');
    expect(member.leaseLeftMs()).toBe(0);
    await member.renewNow();
    expect(world.asked).toContain('numbers');
    expect(member.leaseLeftMs()).toBeGreaterThan(0);
  });
});
