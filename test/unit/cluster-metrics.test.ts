// The sum of the metrics of several workers.
import { expect, test } from 'vitest';
import { type WorkerSnapshot, createClusterMetrics } from '../../src/observe/cluster-metrics.js';
import { createMetrics } from '../../src/observe/metrics.js';

const askedOf = (text: string): number =>
  Number(/^handle_proxy_requests_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);
const bucketOf = (text: string): number =>
  Number(/^handle_proxy_request_seconds_count\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0);

/** Two processes that can be made to stand still or end. */
function startTwo() {
  const processes = [1, 2].map((id) => ({ id, metrics: createMetrics(), state: 'up' }));
  const [one, other] = processes as [(typeof processes)[0], (typeof processes)[0]];
  const count = (process: typeof one, requests: number): void => {
    for (let at = 0; at < requests; at++)
      process.metrics.countRequest({ family: 'record', result: 'hit', status: 200, ms: 1 });
  };
  const ask = (): Promise<WorkerSnapshot[]> =>
    Promise.all(
      processes
        .filter(({ state }) => state !== 'ended')
        .map(async ({ id, metrics, state }) => ({
          id,
          snapshot: state === 'up' ? await metrics.registry.getMetricsAsJSON() : undefined,
        })),
    );
  const { exposition } = createClusterMetrics(ask);
  return { one, other, count, exposition };
}

test('includes all workers that respond', async () => {
  const { one, other, count, exposition } = startTwo();
  count(one, 3);
  count(other, 4);
  const text = await exposition();
  expect([askedOf(text), bucketOf(text)]).toEqual([7, 7]);
});

test('does not fall while a worker is unresponsive, and includes its work when it is back', async () => {
  const { one, other, count, exposition } = startTwo();
  count(one, 3);
  count(other, 4);
  await exposition();
  other.state = 'frozen';
  count(one, 1);
  expect(askedOf(await exposition())).toBe(8);
  other.state = 'up';
  count(other, 1);
  expect(askedOf(await exposition())).toBe(9);
});

test('does not fall when a worker exits, also with concurrent scrapes', async () => {
  const { one, other, count, exposition } = startTwo();
  count(one, 3);
  count(other, 4);
  await exposition();
  other.state = 'ended';
  const texts = await Promise.all([exposition(), exposition(), exposition()]);
  expect(texts.map(askedOf)).toEqual([7, 7, 7]);
  expect(texts.map(bucketOf)).toEqual([7, 7, 7]);
});

test('drops the gauges of an exited worker', async () => {
  const { other, exposition } = startTwo();
  const memoryOf = (text: string): number =>
    Number(/^process_resident_memory_bytes (\d+)/m.exec(text)?.[1] ?? 0);
  const both = memoryOf(await exposition());
  other.state = 'ended';
  expect(memoryOf(await exposition())).toBeLessThan(both * 0.75);
});
