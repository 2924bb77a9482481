// A client with hanging reads reduces only its own share.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import type { Caller } from '../../src/upstream/caller.js';
import { ConcurrencyLimiter } from '../../src/upstream/concurrency-limiter.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const clientNamed = (client: string): Caller => ({ class: 'normal', client, network: undefined });

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('adaptive concurrency with a hanging client', () => {
  test('reserves permits for other clients when its limit drops below the number held by the hanging client', async () => {
    const limiter = new ConcurrencyLimiter({
      concurrency: 64,
      minConcurrency: 8,
      queue: 1000,
      queueTimeoutMs: 2000,
    });
    let refused = 0;
    const read = (client: string, work: () => Promise<void>): Promise<void> =>
      limiter.run(work, { caller: clientNamed(client) }).catch((error: unknown) => {
        if (error instanceof ServiceError && error.code === 'OVERLOADED') refused++;
      });
    const quick = (): Promise<void> => pause(5);
    // These reads establish the normal latency.
    for (let at = 0; at < 60; at++) {
      const reading = read('honest', quick);
      await vi.advanceTimersByTimeAsync(10);
      await reading;
    }
    // 48 reads hang; the first timeouts reduce the limit below the number of permits still held.
    const hang = (at: number) => async (): Promise<void> => {
      await pause(at < 30 ? 3000 + 200 * (at % 3) : 10_000);
      throw new ServiceError('UPSTREAM_TIMEOUT');
    };
    const hanging = Array.from({ length: 48 }, (_, at) => read('hostile', hang(at)));
    await vi.advanceTimersByTimeAsync(3500);
    const { limit, running } = limiter.usage();
    expect(running).toBe(18);
    expect(limit).toBeLessThan(running);
    refused = 0;
    const others = Array.from({ length: 61 }, () => read('honest', quick));
    await vi.advanceTimersByTimeAsync(3000);
    await Promise.all(others);
    expect(refused).toBe(0);
    await vi.advanceTimersByTimeAsync(10_000);
    await Promise.all(hanging);
  });
});
