// Pauses of this process, by the clocks at the time of the question.
import { describe, expect, test } from 'vitest';
import { INSTANCE_LEASE_RENEWAL_MS, PauseDetector } from '../../../src/cache/coherence/lease.js';
import { createManualClock } from '../../support/manual-clock.js';

const open = () => {
  const clock = createManualClock();
  return { clock, pauses: new PauseDetector(clock) };
};

describe('pause detector', () => {
  test('notices no pause while beats are at most a second apart', async () => {
    const { clock, pauses } = open();
    for (const ms of [INSTANCE_LEASE_RENEWAL_MS, 900, INSTANCE_LEASE_RENEWAL_MS]) {
      await clock.pass(ms);
      pauses.beat();
    }
    await clock.pass(1000);
    expect(pauses.uninterruptedMs()).toBe(Infinity);
  });

  test('notices a pause before the next beat', async () => {
    const { clock, pauses } = open();
    await clock.pass(1500);
    expect(pauses.uninterruptedMs()).toBe(0);
    await clock.pass(200);
    expect(pauses.uninterruptedMs()).toBe(200);
  });

  test('notices a pause at the next beat', async () => {
    const { clock, pauses } = open();
    await clock.pass(1500);
    pauses.beat();
    await clock.pass(300);
    expect(pauses.uninterruptedMs()).toBe(300);
  });

  test('notices a second pause before the next beat', async () => {
    const { clock, pauses } = open();
    await clock.pass(1500);
    pauses.uninterruptedMs();
    await clock.pass(1500);
    expect(pauses.uninterruptedMs()).toBe(0);
  });

  test('notices the pause of a machine whose monotonic clock stood still', () => {
    const { clock, pauses } = open();
    clock.setBy(1500);
    expect(pauses.uninterruptedMs()).toBe(0);
  });

  test('does not mistake a wall clock that is set back for a pause', async () => {
    const { clock, pauses } = open();
    clock.setBy(-60_000);
    await clock.pass(500);
    expect(pauses.uninterruptedMs()).toBe(Infinity);
  });
});
