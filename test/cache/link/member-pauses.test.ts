// A pause of an instance's process, as its cache coherence member notices it.
import { describe, expect, test } from 'vitest';
import { PendingInvalidations } from '../../../src/cache/coherence/pending-invalidations.js';
import { Member } from '../../../src/cache/link/member.js';
import { createLinkRedis } from '../../support/link-redis.js';
import { createManualClock } from '../../support/manual-clock.js';

describe('cache coherence member of a paused process', () => {
  test('notices a pause of its process before its timers fire, and none while they do', async () => {
    const { commands, world } = createLinkRedis();
    const clock = createManualClock();
    const nothing = (): undefined => undefined;
    const pending = new PendingInvalidations();
    const member = new Member({ commands, clock, pending, deliver: nothing, onRenewed: nothing });
    await member.renewNow();
    world.isConnected = false;
    await clock.pass(5000);
    expect(member.pauses.uninterruptedMs()).toBe(Infinity);
    clock.stop(1500);
    expect(member.pauses.uninterruptedMs()).toBe(0);
    await clock.pass(5000);
    expect(member.pauses.uninterruptedMs()).toBe(5000);
  });
});
