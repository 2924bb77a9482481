// A clean shutdown: no warning is logged.
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();

async function startOwnRedis(): Promise<Record<string, string>> {
  const { url, stop } = await startRedis();
  onTestFinished(stop);
  // A Redis check fails only after this time, so a stalled machine does not look like an unavailable Redis.
  return { REDIS_URL: url, REDIS_COMMAND_TIMEOUT: '10s' };
}

describe('clean shutdown', () => {
  test.each([
    ['SIGTERM', 'without Redis', false],
    ['SIGINT', 'with Redis', true],
    ['SIGTERM', 'with Redis', true],
  ] as const)('logs no warning on %s (%s)', async (signal, _setup, hasRedis) => {
    const redis = hasRedis ? await startOwnRedis() : {};
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, ...redis });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => ask(proxy.url, '/api/handles/21.T11998/page')),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(await proxy.stop(signal)).toEqual({ code: 0, signal: null });
    const lines = proxy.logs();
    const stoppingAt = lines.findIndex(({ msg }) => msg === 'stopping');
    // Ignores an unavailable Redis before the shutdown: the machine may have stalled for longer than a lease.
    const attention = lines.filter(
      ({ level, msg }, at) =>
        !['info', 'debug'].includes(String(level)) &&
        !(at < stoppingAt && String(msg).startsWith('redis unavailable')),
    );
    expect(attention).toEqual([]);
    expect(proxy.logs().at(-1)).toMatchObject({ msg: 'stopped' });
  });
});
