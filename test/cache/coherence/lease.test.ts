// Until when entries may be served as fresh: the coherence lease.
import { expect, test } from 'vitest';
import { LEASE_MS, LEASE_WAIT_MS, Lease, MEMBERSHIP_MS } from '../../../src/cache/coherence/lease.js';
import { createManualClock } from '../../support/manual-clock.js';

const open = () => {
  const clock = createManualClock();
  return { clock, lease: new Lease(clock) };
};

test('there is no lease before the first renewal', () => {
  expect(open().lease.leftMs()).toBe(0);
});

test('there is no lease before the first renewal where both clocks show the same', () => {
  expect(new Lease({ now: () => 1000, monotonic: () => 1000 }).leftMs()).toBe(0);
});

test('a renewal counts from the moment it was requested', async () => {
  const { clock, lease } = open();
  const asked = lease.now();
  await clock.pass(LEASE_MS - 100);
  lease.renew(asked);
  expect(lease.leftMs()).toBe(100);
  await clock.pass(100);
  expect(lease.leftMs()).toBe(0);
});

test('an answer that is late renews nothing', async () => {
  const { clock, lease } = open();
  const asked = lease.now();
  await clock.pass(LEASE_MS);
  lease.renew(asked);
  expect(lease.leftMs()).toBe(0);
});

test('it ends at once when it is ended', () => {
  const { lease } = open();
  lease.renew(lease.now());
  lease.end();
  expect(lease.leftMs()).toBe(0);
});

test.each([
  [250, LEASE_MS],
  [-250, LEASE_MS],
  [251, 0],
  [-251, 0],
])('with the wall clock %i ms off it has %i ms left', (ms, leftMs) => {
  const { clock, lease } = open();
  lease.renew(lease.now());
  clock.setBy(ms);
  expect(lease.leftMs()).toBe(leftMs);
});

test('a wall clock that was set is good again with the next renewal', () => {
  const { clock, lease } = open();
  lease.renew(lease.now());
  clock.setBy(-3_600_000);
  lease.renew(lease.now());
  expect(lease.leftMs()).toBe(LEASE_MS);
});

test('others wait for longer than it runs, and it is listed for longer than others wait', () => {
  expect(LEASE_WAIT_MS).toBeGreaterThan(LEASE_MS);
  expect(MEMBERSHIP_MS).toBeGreaterThan(LEASE_WAIT_MS);
});
