// Until when the primary waits for a worker.
import { expect, test } from 'vitest';
import { LEASE_MS, LEASE_WAIT_MS } from '../../src/cache/coherence/lease.js';
import { WorkerLeases } from '../../src/process/cluster/worker-leases.js';
import { createManualClock } from '../support/manual-clock.js';

const open = () => {
  const clock = createManualClock();
  return { clock, leases: new WorkerLeases(clock) };
};

test('a worker that never had a lease is not waited for', () => {
  expect(open().leases.isOver(1)).toBe(true);
});

test('a worker is waited for until its lease is over by any clock, and again from its next renewal', async () => {
  const { clock, leases } = open();
  leases.renewed(1);
  await clock.pass(LEASE_MS);
  expect(leases.isOver(1)).toBe(false);
  await clock.pass(LEASE_WAIT_MS - LEASE_MS);
  expect(leases.isOver(1)).toBe(true);
  leases.renewed(1);
  expect(leases.isOver(1)).toBe(false);
});

test('the lease of one worker says nothing of another', async () => {
  const { clock, leases } = open();
  leases.renewed(1);
  await clock.pass(LEASE_MS);
  leases.renewed(2);
  await clock.pass(LEASE_MS);
  expect([1, 2].map(leases.isOver)).toEqual([true, false]);
});

test('a worker that is gone is not waited for', () => {
  const { leases } = open();
  leases.renewed(1);
  leases.left(1);
  expect(leases.isOver(1)).toBe(true);
});
