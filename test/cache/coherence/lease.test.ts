// The coherence lease: entries may be served as fresh until it ends.
import { partial } from '../../support/partial.js';
import { describe, expect, test } from 'vitest';
import {
  LEASE_MS,
  LEASE_WAIT_MS,
  Lease,
  MAX_DRIFT,
  MAX_REDIS_CLOCK_STEP_MS,
  MAX_RENEWAL_DELAY_MS,
  MEMBERSHIP_MS,
} from '../../../src/cache/coherence/lease.js';
import { createManualClock } from '../../support/manual-clock.js';

const open = () => {
  const clock = createManualClock();
  return { clock, lease: new Lease(clock) };
};

describe('coherence lease', () => {
  test('does not exist before the first renewal', () => {
    expect(open().lease.leftMs()).toBe(0);
  });

  test('does not exist before the first renewal, even when both clocks agree', () => {
    expect(new Lease(partial({ now: () => 1000, monotonic: () => 1000 })).leftMs()).toBe(0);
  });

  test('starts at the time of the renewal request', async () => {
    const { clock, lease } = open();
    const asked = lease.now();
    await clock.pass(LEASE_MS - 100);
    lease.renew(asked);
    expect(lease.leftMs()).toBe(100);
    await clock.pass(100);
    expect(lease.leftMs()).toBe(0);
  });

  test('is not renewed by a late reply', async () => {
    const { clock, lease } = open();
    const asked = lease.now();
    await clock.pass(LEASE_MS);
    lease.renew(asked);
    expect(lease.leftMs()).toBe(0);
  });

  test('ends immediately when end() is called', () => {
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
  ])('after a wall clock jump of %i ms, has %i ms left', (ms, leftMs) => {
    const { clock, lease } = open();
    lease.renew(lease.now());
    clock.setBy(ms);
    expect(lease.leftMs()).toBe(leftMs);
  });

  test('is valid again at the next renewal after a wall clock change', () => {
    const { clock, lease } = open();
    lease.renew(lease.now());
    clock.setBy(-3_600_000);
    lease.renew(lease.now());
    expect(lease.leftMs()).toBe(LEASE_MS);
  });

  test('is shorter than the time that other members wait, which is shorter than the membership', () => {
    expect(LEASE_WAIT_MS).toBeGreaterThan(LEASE_MS);
    expect(MEMBERSHIP_MS).toBeGreaterThan(LEASE_WAIT_MS);
  });

  test('has limits that remain valid if the clock of Redis is set back and runs slower', () => {
    expect(MAX_DRIFT * (MAX_RENEWAL_DELAY_MS + MAX_REDIS_CLOCK_STEP_MS)).toBeLessThanOrEqual(LEASE_WAIT_MS);
    expect(MAX_DRIFT * (MEMBERSHIP_MS / 2 + MAX_REDIS_CLOCK_STEP_MS)).toBeLessThanOrEqual(MEMBERSHIP_MS);
  });
});
