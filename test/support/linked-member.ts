// A coherence member with a scripted Redis, for tests of the order of its calls.
import type { Message } from '../../src/cache/coherence/message.js';
import { PendingInvalidations } from '../../src/cache/coherence/pending-invalidations.js';
import { Member } from '../../src/cache/link/member.js';
import { createLinkRedis } from './link-redis.js';
import { createManualClock } from './manual-clock.js';

/** `applied`: until it settles, a change must not be acknowledged. */
export function openMember(applied?: Promise<void>) {
  const { commands, world } = createLinkRedis();
  const clock = createManualClock();
  const pending = new PendingInvalidations();
  const delivered: Message[] = [];
  const leases: boolean[] = [];
  const member = new Member({
    commands,
    clock,
    pending,
    deliver(message) {
      delivered.push(message);
      return applied;
    },
    onRenewed() {
      leases.push(member.leaseLeftMs() > 0);
    },
  });
  return { world, clock, pending, delivered, leases, member };
}
