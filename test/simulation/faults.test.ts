// Simulated faults: in any sequence, Redis stays within the assumptions of the protocol.
import { describe, expect, test } from 'vitest';
import { FaultDriver, type FaultName } from './fault-driver.js';
import type { RedisServer } from './redis.js';
import { World } from './world.js';

const FAULTS_OF_REDIS: FaultName[] = [
  'Redis frozen',
  'Redis restarted empty',
  'Redis restarted with an old dump',
  'failover to a stale replica',
  'failover and back to the old master',
];

describe('simulated faults', () => {
  test('never let two masters serve at the same time', async () => {
    const world = await World.create(1, () => ({
      instances: 0,
      disconnectedWrites: 'wait',
      disconnectedMaxAgeMs: 0,
      commandTimeoutMs: 50,
      keptLines: 20,
    }));
    const { scheduler, trace } = world.simulation;
    const masters = new Set<RedisServer>();
    const isServing = ({ host }: RedisServer): boolean => host.isAlive && !host.isPaused;
    new FaultDriver(world, FAULTS_OF_REDIS).start(1000);
    await scheduler.runUntil(3_600_000, () => {
      masters.add(world.redis);
      return [...masters].filter(isServing).length > 1;
    });
    expect([...masters].filter(isServing).length, trace.lines.join('\n')).toBeLessThan(2);
    expect(masters.size).toBeGreaterThan(100);
  });
});
