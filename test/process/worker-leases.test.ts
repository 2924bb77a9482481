// How long the primary waits for a worker's acknowledgement.
import { expect, test } from 'vitest';
import { LEASE_MS, LEASE_WAIT_MS } from '../../src/cache/coherence/lease.js';
import { WorkerLeases } from '../../src/process/cluster/coherence-hub.js';
import { createManualClock } from '../support/manual-clock.js';

const open = () => {
  const clock = createManualClock();
  return { clock, leases: new WorkerLeases(clock) };
};

test('a worker without a lease needs no acknowledgement', () => {
  expect(open().leases.isExpired(1)).toBe(true);
});

test('a lease expires by the slowest clock, and starts again with the next renewal', async () => {
  const { clock, leases } = open();
  leases.renew(1);
  await clock.pass(LEASE_MS);
  expect(leases.isExpired(1)).toBe(false);
  await clock.pass(LEASE_WAIT_MS - LEASE_MS);
  expect(leases.isExpired(1)).toBe(true);
  leases.renew(1);
  expect(leases.isExpired(1)).toBe(false);
});

test('each worker has its own lease', async () => {
  const { clock, leases } = open();
  leases.renew(1);
  await clock.pass(LEASE_MS);
  leases.renew(2);
  await clock.pass(LEASE_MS);
  expect([1, 2].map(leases.isExpired)).toEqual([true, false]);
});

test('an exited worker has no lease', () => {
  const { leases } = open();
  leases.renew(1);
  leases.remove(1);
  expect(leases.isExpired(1)).toBe(true);
});
