// The queue of changes for one destination: order, retries and drops.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { DeliveryQueue } from '../../src/plugins/changes/webhook.js';
import { gate } from '../support/gate.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const CLOCK = {
  after(ms: number, run: () => void) {
    const timer = setTimeout(run, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** Creates a queue whose destination accepts lines unless `state.isDown`. */
function createQueue() {
  const delivered: string[] = [];
  const state = { isDown: false, dropped: 0, failures: 0, recovered: [] as number[] };
  const deliver = (lines: readonly string[]): Promise<void> => {
    if (state.isDown) return Promise.reject(new Error('down'));
    delivered.push(...lines);
    return Promise.resolve();
  };
  const callbacks = {
    formatGap: (count: number) => `gap ${count}`,
    onDropped: (count: number) => (state.dropped += count),
    onFailing: () => state.failures++,
    onRecovered: (dropped: number) => state.recovered.push(dropped),
  };
  const queue = new DeliveryQueue(deliver, callbacks, CLOCK);
  return { queue, delivered, state };
}

const NO_CALLBACKS = {
  formatGap: String,
  onDropped: () => undefined,
  onFailing: () => undefined,
  onRecovered: () => undefined,
};

const numbers = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => String(from + at));

describe('delivery queue', () => {
  it('delivers lines in order before `add` resolves', async () => {
    const { queue, delivered } = createQueue();
    await Promise.all([queue.add(numbers(0, 250)), queue.add(numbers(250, 251))]);
    expect(delivered).toEqual(numbers(0, 251));
    expect(queue.length).toBe(0);
  });

  it('delivers all lines after an outage, and reports each failure and its end', async () => {
    const { queue, delivered, state } = createQueue();
    state.isDown = true;
    await queue.add(['0']);
    await queue.add(['1', '2']);
    await vi.advanceTimersByTimeAsync(2000);
    expect([queue.length, state.failures]).toEqual([3, 5]);
    state.isDown = false;
    await vi.advanceTimersByTimeAsync(500);
    expect(delivered).toEqual(['0', '1', '2']);
    await queue.add(['3']);
    expect(delivered).toEqual(['0', '1', '2', '3']);
    expect(state.recovered).toEqual([0]);
  });

  it('delivers a line that is added while the first delivery after an outage is under way', async () => {
    const { queue, delivered, state } = createQueue();
    state.isDown = true;
    await queue.add(['0']);
    state.isDown = false;
    vi.advanceTimersByTime(500);
    expect(delivered).toEqual(['0']);
    await queue.add(['1']);
    await vi.advanceTimersByTimeAsync(0);
    expect(delivered).toEqual(['0', '1']);
    expect(state.recovered).toEqual([0]);
  });

  it('drops the oldest lines above 10,000, counts them, and delivers a gap in their place', async () => {
    const { queue, delivered, state } = createQueue();
    state.isDown = true;
    await queue.add(numbers(0, 9_999));
    await queue.add(numbers(9_999, 10_005));
    expect([queue.length, state.dropped]).toEqual([10_000, 5]);
    state.isDown = false;
    await vi.advanceTimersByTimeAsync(500);
    expect(delivered).toEqual(['gap 5', ...numbers(5, 10_005)]);
    await queue.add(['last']);
    expect(delivered.at(-2)).toBe('10004');
    expect(state.recovered).toEqual([5]);
  });

  it('drops the oldest lines above 8 Mi characters', async () => {
    const { queue, delivered, state } = createQueue();
    state.isDown = true;
    const long = 'x'.repeat(1024 * 1024);
    await queue.add(['first']);
    for (let added = 0; added < 10; added++) {
      await queue.add([`${added}${long}`]);
      // Also when attempts have failed meanwhile.
      await vi.advanceTimersByTimeAsync(500);
    }
    expect([queue.length, state.dropped]).toEqual([7, 4]);
    state.isDown = false;
    await vi.advanceTimersByTimeAsync(500);
    expect(delivered.map((line) => line.slice(0, 5))).toEqual([
      'gap 4',
      ...['3xxxx', '4xxxx', '5xxxx', '6xxxx', '7xxxx', '8xxxx', '9xxxx'],
    ]);
  });

  it('resolves `add` after 500 ms when the destination does not respond', async () => {
    const lines: string[] = [];
    const queue = new DeliveryQueue(() => new Promise(() => undefined), NO_CALLBACKS, CLOCK);
    const added = queue.add(['0']).then(() => lines.push('resolved'));
    await vi.advanceTimersByTimeAsync(499);
    expect(lines).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    vi.useRealTimers();
    await added;
    expect(queue.length).toBe(1);
  });

  it('attempts a last delivery when it is closed', async () => {
    const { queue, delivered, state } = createQueue();
    state.isDown = true;
    await queue.add(['0']);
    await queue.close();
    expect(delivered).toEqual([]);
    state.isDown = false;
    await queue.close();
    expect(delivered).toEqual(['0']);
  });

  it('attempts a last delivery after a batch in flight that fails when it is closed', async () => {
    const { queue, delivered, state } = createQueue();
    state.isDown = true;
    const added = queue.add(['0']);
    const closed = queue.close();
    state.isDown = false;
    await Promise.all([added, closed]);
    expect(delivered).toEqual(['0']);
  });

  it('attempts nothing more after the last delivery has failed', async () => {
    const { queue, state } = createQueue();
    state.isDown = true;
    await queue.close();
    await queue.add(['0']);
    await queue.close();
    const { failures } = state;
    await vi.advanceTimersByTimeAsync(2000);
    expect(state.failures).toBe(failures);
  });

  it('retries once every 500 ms, also when several attempts have failed', async () => {
    const { queue, state } = createQueue();
    state.isDown = true;
    await Promise.all([queue.add(['0']), queue.add(['1'])]);
    expect(state.failures).toBe(2);
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.failures).toBe(4);
  });

  it('waits for a retry under way when it is closed', async () => {
    const responding = gate();
    const delivered: string[][] = [];
    let isDown = true;
    const deliver = async (lines: readonly string[]): Promise<void> => {
      if (isDown) throw new Error('down');
      delivered.push([...lines]);
      await responding.opened;
    };
    const queue = new DeliveryQueue(deliver, NO_CALLBACKS, CLOCK);
    await queue.add(['0']);
    isDown = false;
    await vi.advanceTimersByTimeAsync(500);
    await queue.add(['1']);
    const closed = queue.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(delivered).toEqual([['0']]);
    responding.open();
    await closed;
    expect(delivered).toEqual([['0'], ['1']]);
  });

  it('lets no write wait for lines that are added while its own are delivered', async () => {
    let added = 0;
    const queue = new DeliveryQueue(
      async () => {
        await nextTurn();
        if (++added < 20) void queue.add([`later ${added}`]);
      },
      NO_CALLBACKS,
      CLOCK,
    );
    await queue.add(['0']);
    expect(added).toBeLessThan(3);
  });
});
