// Publication of changes to every process: with Redis, without Redis, and during an outage.
import { partial } from '../../support/partial.js';
import { describe, expect, test } from 'vitest';
import { Hub, type DisconnectedWrites, type Membership } from '../../../src/cache/link/hub.js';
import {
  LEASE_MS,
  LEASE_WAIT_MS,
  MAX_DRIFT,
  MEMBERSHIP_MS,
  INSTANCE_LEASE_RENEWAL_MS,
} from '../../../src/cache/coherence/lease.js';
import type { Change, Deliver, Message } from '../../../src/cache/coherence/message.js';
import { PendingInvalidations } from '../../../src/cache/coherence/pending-invalidations.js';
import { gate } from '../../support/gate.js';
import { createManualClock, isSettled, settled } from '../../support/manual-clock.js';

const RAISE: Change = { kind: 'raise', key: 'A', fence: '1', lifeMs: 60_000 };
const CHANGED: Change = { kind: 'changed', key: 'A', fence: '1' };
const CHANGED_BY_ME: Change = { kind: 'changed', key: 'A', fence: 'me/1' };
const UNKNOWN: Change = { kind: 'unknown', key: 'A', fence: '1', lifeMs: 60_000 };
const notConfirmed = { code: 'INVALIDATION_UNCONFIRMED', status: 503, retryAfterSeconds: 1 };

describe('coherence hub', () => {
  test('confirms a change once it is applied locally, if no Redis is configured', async () => {
    const delivered: Message[] = [];
    const applied = gate();
    const deliver: Deliver = (message) => {
      delivered.push(message);
      return applied.opened;
    };
    const hub = new Hub({ now: Date.now, deliver });
    const published = hub.publish(CHANGED);
    expect(await isSettled(published)).toBe(false);
    applied.open();
    await published;
    expect(delivered).toEqual([{ ...CHANGED, fence: 'local/1' }]);
    expect(hub.isLinked()).toBe(true);
    expect(hub.trustedSince()).toBe(0);
  });

  const notBack: Membership['waitForReturn'] = () => Promise.resolve(false);

  /** Opens an instance with a scripted Redis link. */
  function open(disconnectedWrites: DisconnectedWrites = 'wait') {
    const clock = createManualClock();
    const pending = new PendingInvalidations();
    const delivered: Message[] = [];
    const published: Change[] = [];
    const world = {
      leaseLeftMs: 1000,
      isJoining: false,
      uninterruptedMs: Infinity,
      /** Returns undefined during a Redis outage. */
      publish: (): Awaited<ReturnType<Membership['publish']>> => ({
        seq: 7,
        isStored: false,
        acknowledged: Promise.resolve(true),
      }),
      returned: notBack,
      applied: undefined as ReturnType<Deliver>,
    };
    const member: Membership = {
      id: 'me',
      leaseLeftMs: () => world.leaseLeftMs,
      isJoining: () => world.isJoining,
      pauses: partial({ uninterruptedMs: () => world.uninterruptedMs }),
      publish(change) {
        const result = world.publish();
        if (result) published.push(change);
        return Promise.resolve(result);
      },
      waitForReturn: (afterRenewalMs) => world.returned(afterRenewalMs),
    };
    const hub = new Hub({
      now: clock.now,
      deliver(message) {
        delivered.push(message);
        return world.applied;
      },
      remote: { member, pending, disconnectedWrites, disconnectedMaxAgeMs: 5000 },
    });
    return { hub, clock, pending, delivered, published, world };
  }

  const away = (): undefined => undefined;

  test('confirms a change once it is applied locally and acknowledged by the other members', async () => {
    const { hub, delivered, world } = open();
    const acknowledged = gate();
    world.publish = () => ({ seq: 7, isStored: false, acknowledged: acknowledged.opened.then(() => true) });
    const published = hub.publish(CHANGED);
    expect(await isSettled(published)).toBe(false);
    expect(delivered).toEqual([CHANGED_BY_ME]);
    acknowledged.open();
    await published;
  });

  test.each([
    ['after its publication', undefined],
    ['during an outage of Redis', away],
  ])('confirms a change once everything that concerns it here is done: %s', async (_, publish) => {
    const { hub, world } = open();
    const applied = gate();
    Object.assign(world, { applied: applied.opened, ...(publish && { publish }) });
    const published = hub.publish(CHANGED);
    expect(await isSettled(published)).toBe(false);
    applied.open();
    await published;
  });

  test('applies only fences before Redis has published, because an older read may still be copied', async () => {
    const { hub, delivered, world } = open();
    const before: Message[][] = [];
    world.publish = () => {
      before.push([...delivered]);
      return { seq: 7, isStored: false, acknowledged: Promise.resolve(true) };
    };
    await hub.publish(RAISE);
    await hub.publish(CHANGED);
    const raised = { ...RAISE, fence: 'me/1' };
    expect(before).toEqual([[raised], [raised]]);
  });

  test('raises a fence once Redis has published it, without waiting for acknowledgements', async () => {
    const { hub, world } = open();
    world.publish = () => ({ seq: 7, isStored: false, acknowledged: new Promise(() => undefined) });
    expect(await isSettled(hub.publish(RAISE))).toBe(true);
  });

  test('applies a ban with the number assigned by Redis', async () => {
    const { hub, delivered } = open();
    await hub.publish({ kind: 'ban', prefix: 'A', isSoft: false, number: 0 });
    expect(delivered).toEqual([{ kind: 'ban', prefix: 'A', isSoft: false, number: 7 }]);
  });

  test('treats only young entries as fresh when it has no lease', () => {
    const { hub, clock, world } = open();
    expect([hub.isLinked(), hub.trustedSince()]).toEqual([true, 0]);
    world.leaseLeftMs = 0;
    expect([hub.isLinked(), hub.trustedSince()]).toEqual([false, clock.now() - 5000]);
  });

  test('treats no entry from before a pause as fresh when it has no lease', () => {
    const { hub, clock, world } = open();
    world.uninterruptedMs = 100;
    expect(hub.trustedSince()).toBe(0);
    world.leaseLeftMs = 0;
    expect(hub.trustedSince()).toBe(clock.now() - 101);
    world.uninterruptedMs = 6000;
    expect(hub.trustedSince()).toBe(clock.now() - 5000);
  });

  test('treats no entry as fresh before the first join', () => {
    const { hub, world } = open();
    world.leaseLeftMs = 0;
    world.isJoining = true;
    expect([hub.isLinked(), hub.trustedSince()]).toEqual([false, Infinity]);
  });

  test('applies an unpublished change locally, and publishes the pending change when Redis returns', async () => {
    const { hub, pending, delivered, published, world } = open();
    const back = gate();
    const acknowledged = gate();
    world.publish = away;
    world.returned = () => back.opened.then(() => true);
    const publishing = hub.publish(CHANGED);
    await settled();
    expect(delivered).toEqual([CHANGED_BY_ME]);
    expect(pending.take(10)).toEqual([{ kind: 'forget', key: 'A' }]);
    world.publish = () => ({ seq: 8, isStored: false, acknowledged: acknowledged.opened.then(() => true) });
    back.open();
    expect(await isSettled(publishing)).toBe(false);
    expect(published).toEqual([CHANGED_BY_ME]);
    acknowledged.open();
    await publishing;
  });

  test.each<DisconnectedWrites>(['wait', 'reject'])(
    'confirms no unacknowledged change, however often Redis returns (disconnectedWrites=%s)',
    async (disconnectedWrites) => {
      const { hub, pending, published, world } = open(disconnectedWrites);
      world.publish = () => ({ seq: 7, isStored: false, acknowledged: Promise.resolve(false) });
      let returns = 0;
      world.returned = () => (++returns < 20 ? Promise.resolve(true) : new Promise(() => undefined));
      const publishing = hub.publish(CHANGED);
      publishing.catch(() => undefined);
      expect(await isSettled(publishing)).toBe(true);
      await expect(publishing).rejects.toMatchObject({
        ...notConfirmed,
        detail: 'Redis was lost again each time it returned',
      });
      expect(published).toHaveLength(4);
      expect(pending.take(10)).toEqual([{ kind: 'forget', key: 'A' }]);
    },
  );

  test('with disconnectedWrites=wait, confirms a write when Redis does not return in time, and publishes it later', async () => {
    const { hub, pending, world } = open('wait');
    world.publish = away;
    await hub.publish(RAISE);
    await hub.publish(CHANGED);
    expect(pending.take(10)).toEqual([{ kind: 'forget', key: 'A' }]);
  });

  test('waits for Redis until the membership and all other leases have ended', async () => {
    const { hub, world } = open();
    const waits: number[] = [];
    world.publish = away;
    world.returned = (afterRenewalMs) => {
      waits.push(afterRenewalMs);
      return Promise.resolve(false);
    };
    await hub.publish(CHANGED);
    // Redis may process the last renewal up to a lease late, and its clock may jump by a second.
    const membershipMs = MAX_DRIFT * (LEASE_MS + MEMBERSHIP_MS + 1000);
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeGreaterThanOrEqual(membershipMs + LEASE_WAIT_MS + INSTANCE_LEASE_RENEWAL_MS);
  });

  test('with disconnectedWrites=reject, rejects a write when Redis does not return in time, and publishes it later', async () => {
    const { hub, pending, world } = open('reject');
    world.publish = away;
    const away503 = { ...notConfirmed, detail: 'Redis is unavailable' };
    await expect(hub.publish(CHANGED)).rejects.toMatchObject(away503);
    expect(pending.take(10)).toEqual([{ kind: 'forget', key: 'A' }]);
  });

  test('with disconnectedWrites=reject, rejects a write and lowers its fence when the fence cannot be published', async () => {
    const { hub, delivered, world } = open('reject');
    world.publish = away;
    await expect(hub.publish(RAISE)).rejects.toMatchObject(notConfirmed);
    expect(delivered.at(-1)).toEqual({ kind: 'unchanged', key: 'A', fence: 'me/1' });
  });

  test.each<DisconnectedWrites>(['wait', 'reject'])(
    'waits again when Redis is lost before the change is published (disconnectedWrites=%s)',
    async (disconnectedWrites) => {
      const { hub, pending, published, world } = open(disconnectedWrites);
      const second = gate();
      let returns = 0;
      world.publish = away;
      world.returned = () => (++returns === 1 ? Promise.resolve(true) : second.opened.then(() => true));
      const publishing = hub.publish(CHANGED);
      expect(await isSettled(publishing)).toBe(false);
      expect(pending.size).toBe(1);
      world.publish = () => ({ seq: 8, isStored: false, acknowledged: Promise.resolve(true) });
      second.open();
      await publishing;
      expect(published).toEqual([CHANGED_BY_ME]);
    },
  );

  test('does not wait after a write of unknown outcome, and publishes a soft invalidation later', async () => {
    const { hub, pending, world } = open('reject');
    world.publish = away;
    await hub.publish(UNKNOWN);
    expect(pending.take(10)).toEqual([{ kind: 'soften', key: 'A' }]);
  });

  test('discards a rejected write that cannot be published', async () => {
    const { hub, pending, delivered, world } = open('reject');
    world.publish = away;
    await hub.publish({ kind: 'unchanged', key: 'A', fence: '1' });
    expect(delivered).toEqual([{ kind: 'unchanged', key: 'A', fence: 'me/1' }]);
    expect(pending.size).toBe(0);
  });

  test('with disconnectedWrites=reject, rejects a change that is not acknowledged in time, and publishes it later', async () => {
    const { hub, pending, published, world } = open('reject');
    world.publish = () => ({ seq: 7, isStored: false, acknowledged: Promise.resolve(false) });
    await expect(hub.publish(CHANGED)).rejects.toMatchObject(notConfirmed);
    expect(published).toEqual([CHANGED_BY_ME]);
    expect(pending.size).toBe(1);
  });

  test('publishes a change later that was not acknowledged when Redis returned either', async () => {
    const { hub, pending, world } = open('wait');
    world.publish = away;
    const returns = [true, false];
    world.returned = () => {
      const isBack = returns.shift() === true;
      // The return publishes what is pending.
      if (isBack) pending.take(10);
      return Promise.resolve(isBack);
    };
    await hub.publish(CHANGED);
    expect(pending.take(10)).toEqual([{ kind: 'forget', key: 'A' }]);
  });

  test('publishes a change again when it was not acknowledged in time and Redis returns', async () => {
    const { hub, published, world } = open();
    const acknowledgements = [false, true];
    world.publish = () => ({
      seq: 7,
      isStored: false,
      acknowledged: Promise.resolve(acknowledgements.shift() ?? true),
    });
    world.returned = () => Promise.resolve(true);
    await hub.publish(CHANGED);
    expect(published).toEqual([CHANGED_BY_ME, CHANGED_BY_ME]);
  });

  test('leaves a replacement in memory if Redis has stored it, and invalidates it otherwise', async () => {
    const replacement = { run: 'run', seq: 1, bytes: Buffer.from('entry'), lifeMs: 1000 };
    for (const isStored of [true, false]) {
      const { hub, world, delivered } = open();
      world.publish = () => ({ seq: 7, isStored, acknowledged: Promise.resolve(true) });
      await hub.publish({ kind: 'forget', key: 'A', replacement });
      expect(delivered).toHaveLength(isStored ? 0 : 1);
    }
  });

  test.each(['wait', 'reject'] as const)(
    'defers the publication of an identical record without waiting (disconnectedWrites=%s)',
    async (disconnectedWrites) => {
      const { hub, world, pending } = open(disconnectedWrites);
      world.publish = away;
      world.returned = () => new Promise(() => undefined);
      await hub.publish({ kind: 'forget', key: 'A', isUnchanged: true });
      expect(pending.take(2)).toEqual([{ kind: 'forget', key: 'A' }]);
    },
  );

  test('publishes an acknowledged change once', async () => {
    const { hub, pending, published, world } = open();
    world.returned = () => Promise.resolve(true);
    await hub.publish(CHANGED);
    expect([published.length, pending.size]).toEqual([1, 0]);
  });
});
