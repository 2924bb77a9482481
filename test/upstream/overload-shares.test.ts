// The server capacity drops to a tenth, with 10 greedy and 200 polite clients.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import type { Caller, CallerClass } from '../../src/upstream/caller.js';
import { ConcurrencyLimiter } from '../../src/upstream/concurrency-limiter.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const SECOND = 1000;
const FAST = { perSecond: 1000, forMs: SECOND };
const SLOW = { perSecond: 100, forMs: 6 * SECOND };
const LATENCY_MS = 5;
const WAIT_MS = 2 * SECOND;
const MEASURED_SECONDS = (SLOW.forMs - WAIT_MS) / SECOND;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts a server that handles requests in sequence at the current capacity. */
function startServer() {
  const startedAt = performance.now();
  let freeAt = 0;
  return async function answer(): Promise<void> {
    const now = performance.now();
    const { perSecond } = now - startedAt < FAST.forMs ? FAST : SLOW;
    freeAt = Math.max(freeAt, now) + SECOND / perSecond;
    await pause(freeAt - now + LATENCY_MS);
  };
}

interface Crowd {
  clients: number;
  /** Concurrent requests per client. */
  parallel: number;
  everyMs: number;
  class: CallerClass;
}

interface Share {
  asked: number;
  answered: number;
}

/** Runs all crowds through both phases and returns their shares in the second phase. */
async function sharesOf(...crowds: Crowd[]): Promise<{ shares: Share[]; limit: number }> {
  const limiter = new ConcurrencyLimiter({
    concurrency: 64,
    minConcurrency: 8,
    queue: 1000,
    queueTimeoutMs: WAIT_MS,
  });
  const answer = startServer();
  const startedAt = performance.now();
  const endsAfterMs = FAST.forMs + SLOW.forMs;
  const isOver = (): boolean => performance.now() - startedAt > endsAfterMs;
  /** Whether a request is measured; later requests may still be queued when the load ends. */
  const isMeasured = (): boolean =>
    performance.now() - startedAt > FAST.forMs && performance.now() - startedAt < endsAfterMs - WAIT_MS;

  async function ask(caller: Caller, share: Share): Promise<void> {
    const isCounted = isMeasured();
    if (isCounted) share.asked++;
    try {
      await limiter.run(answer, { caller });
      if (isCounted) share.answered++;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
    }
  }
  async function repeat(caller: Caller, { everyMs }: Crowd, share: Share): Promise<void> {
    while (!isOver()) {
      const next = pause(everyMs);
      await ask(caller, share);
      await next;
    }
  }
  const shares = crowds.map((crowd, number) => {
    const share = { asked: 0, answered: 0 };
    for (let client = 0; client < crowd.clients; client++) {
      const caller: Caller = { class: crowd.class, client: `${number}-${client}` };
      for (let one = 0; one < crowd.parallel; one++) {
        setTimeout(() => void repeat(caller, crowd, share), (client * crowd.everyMs) / crowd.clients);
      }
    }
    return share;
  });
  await vi.advanceTimersByTimeAsync(FAST.forMs + SLOW.forMs);
  const { limit } = limiter.usage();
  await vi.advanceTimersByTimeAsync(5 * SECOND);
  return { shares, limit };
}

const GREEDY: Crowd = { clients: 10, parallel: 25, everyMs: 0.5 * SECOND, class: 'normal' };
/** 80 requests per second, below the server capacity. */
const POLITE: Crowd = { clients: 200, parallel: 1, everyMs: 2.5 * SECOND, class: 'normal' };

describe('overloaded Handle server', () => {
  test('serves at least 90 % of polite demand, and gives the remaining capacity to greedy clients', async () => {
    const { shares, limit } = await sharesOf(GREEDY, POLITE);
    const [greedy, polite] = shares as [Share, Share];
    expect(polite.answered / polite.asked).toBeGreaterThanOrEqual(0.9);
    expect(greedy.answered).toBeGreaterThan(0);
    expect(greedy.answered / MEASURED_SECONDS).toBeLessThan(0.4 * SLOW.perSecond);
    const given = (greedy.answered + polite.answered) / MEASURED_SECONDS;
    expect(given).toBeGreaterThan(0.9 * SLOW.perSecond);
    expect(limit).toBeLessThan(32);
  });

  test('does not starve background requests in favour of greedy clients', async () => {
    const { shares } = await sharesOf(GREEDY, {
      clients: 1,
      parallel: 25,
      everyMs: 0.5 * SECOND,
      class: 'background',
    });
    const [greedy, background] = shares as [Share, Share];
    expect(greedy.answered).toBeGreaterThan(background.answered);
    expect(background.answered).toBeGreaterThan(0.1 * SLOW.perSecond * MEASURED_SECONDS);
  });
});
