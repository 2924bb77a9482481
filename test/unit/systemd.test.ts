// The interval comes from environment variables, as for sd_watchdog_enabled(3).
import { describe, expect, test } from 'vitest';
import { watchdogIntervalMs } from '../../src/app/systemd.js';

const PID = 42;

describe('systemd watchdog', () => {
  test.each<[what: string, env: Record<string, string>, ms: number | undefined]>([
    ['twice per period', { WATCHDOG_USEC: '30000000', WATCHDOG_PID: '42' }, 15_000],
    ['twice per period without a process id', { WATCHDOG_USEC: '30000000' }, 15_000],
    [
      'at the maximum Node.js timer interval for a longer period',
      { WATCHDOG_USEC: '5000000000000' },
      2 ** 31 - 1,
    ],
    ['never without a period', { WATCHDOG_PID: '42' }, undefined],
    ['never for a different process', { WATCHDOG_USEC: '30000000', WATCHDOG_PID: '43' }, undefined],
    ['never for an invalid period', { WATCHDOG_USEC: '30s' }, undefined],
    ['never for an empty period', { WATCHDOG_USEC: '' }, undefined],
    ['never for a period of 0', { WATCHDOG_USEC: '0' }, undefined],
  ])('is notified %s', (_what, env, ms) => {
    expect(watchdogIntervalMs(env, PID)).toBe(ms);
  });
});
