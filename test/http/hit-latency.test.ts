// Hits served from prepared responses are counted in the latency histogram and the statistics.
import { describe, expect, test } from 'vitest';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream } from '../support/upstream.js';
import { useNock } from '../support/nock.js';

useNock();

describe('latency histogram', () => {
  test('counts 50 requests, 49 of which are cache hits', async () => {
    mockUpstream();
    const proxy = await startProxy();
    for (let times = 0; times < 50; times++) await proxy.ask(PATH);
    const counted = async (): Promise<unknown> => {
      const histogram = (await proxy.metrics()).find(
        ({ name }) => name === 'handle_proxy_request_duration_seconds',
      );
      const counts = (histogram?.values ?? []) as { metricName?: string; labels: object; value: number }[];
      return counts
        .filter(
          ({ metricName, value }) =>
            metricName === 'handle_proxy_request_duration_seconds_count' && value > 0,
        )
        .map(({ labels, value }) => ({ ...labels, value }));
    };
    await expect.poll(counted).toEqual([
      { interface: 'record', result: 'hit', value: 49 },
      { interface: 'record', result: 'miss', value: 1 },
    ]);
    expect(await proxy.app.operations.stats()).toMatchObject({
      requests: { total: 50, hits: 49, misses: 1, latency: { count: 50 } },
      topHandles: [{ name: HANDLE, count: 50 }],
    });
  });
});
