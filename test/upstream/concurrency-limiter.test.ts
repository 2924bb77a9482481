// Each record receives only a share of the permits and of the queue.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConcurrencyLimiter } from '../../src/upstream/concurrency-limiter.js';

const WAIT_MS = 60_000;

/** Whether a promise has settled once all due callbacks have run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const late = Symbol('late');
  const first = await Promise.race([promise, new Promise((resolve) => setImmediate(resolve, late))]);
  return first !== late;
}

describe('concurrency limiter', () => {
  test('limits a key to an eighth of the permits while other keys bypass its queue', async () => {
    const limiter = new ConcurrencyLimiter({ concurrency: 16, queue: 100, queueTimeoutMs: WAIT_MS });
    const turns = await Promise.all([limiter.acquire({ key: 'A' }), limiter.acquire({ key: 'A' })]);
    const third = limiter.acquire({ key: 'A' });
    expect(await isSettled(third)).toBe(false);
    const others = await Promise.all(
      Array.from({ length: 14 }, (_, at) => limiter.acquire({ key: `B${at}` })),
    );
    expect(limiter.usage()).toMatchObject({ running: 16, waiting: 1 });
    const another = limiter.acquire({ key: 'C' });
    others[0]?.();
    expect(await isSettled(another)).toBe(true);
    expect(await isSettled(third)).toBe(false);
    turns[0]();
    expect(await isSettled(third)).toBe(true);
    expect(limiter.usage()).toMatchObject({ running: 16, waiting: 0 });
  });

  test('grants a permit that is released after a pause, although the time in the queue is over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const limiter = new ConcurrencyLimiter({ concurrency: 1, queue: 100, queueTimeoutMs: WAIT_MS });
    const release = await limiter.acquire();
    const waiting = limiter.acquire();
    vi.advanceTimersByTime(0.75 * WAIT_MS);
    await nextTurn();
    vi.advanceTimersByTime(WAIT_MS);
    release();
    await expect(waiting).resolves.toBeInstanceOf(Function);
  });

  test('grants released permits to the first eligible waiter until all are free', async () => {
    const limiter = new ConcurrencyLimiter({ concurrency: 2, queue: 100, queueTimeoutMs: WAIT_MS });
    const order: string[] = [];
    const work = (name: string, key?: string): Promise<void> =>
      limiter.run(
        async () => {
          order.push(name);
          await new Promise(setImmediate);
        },
        { key },
      );
    await Promise.all([
      work('A1', 'A'),
      work('A2', 'A'),
      work('B1', 'B'),
      work('A3', 'A'),
      work('none'),
      work('B2', 'B'),
    ]);
    expect([...order].sort()).toEqual(['A1', 'A2', 'A3', 'B1', 'B2', 'none']);
    expect(order.slice(0, 2)).toEqual(['A1', 'B1']);
    expect(limiter.usage()).toMatchObject({ running: 0, waiting: 0 });
  });

  test('limits a key to half of the queue', async () => {
    const limiter = new ConcurrencyLimiter({ concurrency: 1, queue: 4, queueTimeoutMs: WAIT_MS });
    const leave = await limiter.acquire({ key: 'A' });
    const waiting = [limiter.acquire({ key: 'A' }), limiter.acquire({ key: 'A' })];
    await expect(limiter.acquire({ key: 'A' })).rejects.toMatchObject({ code: 'OVERLOADED' });
    waiting.push(limiter.acquire({ key: 'B' }), limiter.acquire());
    await expect(limiter.acquire({ key: 'B' })).rejects.toMatchObject({ code: 'OVERLOADED' });
    leave();
    for (const turn of waiting) (await turn)();
    expect(limiter.usage()).toMatchObject({ running: 0, waiting: 0 });
  });

  test('rejects the last request of the client with the most, if another needs its place in the queue', async () => {
    const limiter = new ConcurrencyLimiter({ concurrency: 1, queue: 2, queueTimeoutMs: WAIT_MS });
    const callerOf = (client: string) => ({ caller: { class: 'normal', client } as const });
    const leave = await limiter.acquire();
    const [first, last] = [limiter.acquire(callerOf('greedy')), limiter.acquire(callerOf('greedy'))];
    const polite = limiter.acquire(callerOf('polite'));
    await expect(last).rejects.toMatchObject({ code: 'OVERLOADED' });
    leave();
    for (const turn of [first, polite]) (await turn)();
    expect(limiter.usage()).toMatchObject({ running: 0, waiting: 0 });
  });

  test('limits requests without a key only by the permits', async () => {
    const limiter = new ConcurrencyLimiter({ concurrency: 4, queue: 4, queueTimeoutMs: WAIT_MS });
    await Promise.all(Array.from({ length: 4 }, () => limiter.acquire()));
    expect(limiter.usage()).toMatchObject({ running: 4, waiting: 0 });
  });

  test('releases the permit and queue slot of failed, rejected, timed-out and preempted requests', async () => {
    const limiter = new ConcurrencyLimiter({ concurrency: 4, queue: 4, queueTimeoutMs: 20 });
    const fail = (): Promise<never> => Promise.reject(new Error('failed'));
    const held = await Promise.all(Array.from({ length: 4 }, () => limiter.acquire()));
    const [ended] = held as [() => void];
    const disallow = limiter.allowPreemption(() => {
      ended();
      return true;
    });
    // The first queued request receives the preempted permit, three time out, and the others are rejected.
    const results = await Promise.allSettled(Array.from({ length: 40 }, () => limiter.run(fail)));
    const messages = results.map((result) => String((result as PromiseRejectedResult).reason));
    expect(messages.filter((message) => message.includes('are waiting'))).toHaveLength(36);
    expect(messages.some((message) => message.includes('failed'))).toBe(true);
    disallow();
    for (const release of held) {
      release();
      release();
    }
    expect(limiter.usage()).toMatchObject({ running: 0, waiting: 0 });
    // A leaked permit would block the next four requests; a leaked queue slot would reject the last four.
    const again = await Promise.all(
      Array.from({ length: 8 }, () => limiter.run(() => Promise.resolve('ran'))),
    );
    expect(again).toEqual(Array<string>(8).fill('ran'));
    await Promise.allSettled(Array.from({ length: 20 }, (_, at) => limiter.run(fail, { key: `K${at % 2}` })));
    expect(limiter.usage()).toMatchObject({ running: 0, waiting: 0 });
    const slots = await Promise.all(Array.from({ length: 4 }, () => limiter.acquire()));
    expect(slots).toHaveLength(4);
  });
});
