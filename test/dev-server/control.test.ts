// Demo server controls for tests and benchmarks: request counts, delays and record changes.
import { afterEach, describe, expect, it } from 'vitest';
import { startDemoServer } from '../support/demo.js';

const server = await startDemoServer();
const page = `${server.url}/api/handles/21.T11998/page`;
const value = { index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org/other' } };

afterEach(() => {
  server.heal();
  server.reset();
});

describe('demo server controls', () => {
  it('count all requests, and the requests for a handle in any spelling', async () => {
    await fetch(page);
    await fetch(`${server.url}/api/handles/21.t11998%2FPAGE?index=1`);
    await fetch(`${server.url}/api/site`);
    expect(server.asked).toBe(3);
    expect(server.askedFor('21.T11998/page')).toBe(2);
    expect(server.askedFor('21.T11998/other')).toBe(0);
  });

  it('count the probe of a starting proxy separately, and exempt it from faults', async () => {
    const { probed } = server;
    server.fail('reset', { times: 1 });
    const probe = await fetch(`${server.url}/api/site`, {
      headers: { 'user-agent': 'handle-resolver-proxy' },
    });
    expect(probe.status).toBe(200);
    await expect(fetch(page)).rejects.toThrow();
    expect([server.asked, server.probed - probed]).toEqual([1, 1]);
  });

  it('count from 0 after a reset', async () => {
    await fetch(page);
    server.reset();
    expect(server.asked).toBe(0);
    expect(server.askedFor('21.T11998/page')).toBe(0);
    expect(server.lastRequest).toBeUndefined();
  });

  it('return the last request as received', async () => {
    await fetch(`${page}?type=URL`, { headers: { via: '1.1 somebody' } });
    expect(server.lastRequest).toMatchObject({
      method: 'GET',
      target: '/api/handles/21.T11998/page?type=URL',
      headers: { via: '1.1 somebody' },
    });
  });

  it('add and remove records without a request', async () => {
    server.put('21.T11998/sudden', [value]);
    const found = await fetch(`${server.url}/api/handles/21.T11998/sudden`);
    expect(await found.json()).toMatchObject({ responseCode: 1, values: [value] });
    expect(server.remove('21.T11998/SUDDEN')).toBe(true);
    expect(server.remove('21.T11998/sudden')).toBe(false);
    expect((await fetch(`${server.url}/api/handles/21.T11998/sudden`)).status).toBe(404);
  });

  it('delay responses', async () => {
    server.delay(60);
    const startedAt = performance.now();
    await fetch(page);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(55);
  });

  it('queue requests above the capacity', async () => {
    const narrow = await startDemoServer({ capacityPerSecond: 50 });
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 5 }, () => fetch(`${narrow.url}/api/site`)));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(75);
  });

  it('change the capacity while connections are open', async () => {
    const server = await startDemoServer();
    const ask = (): Promise<Response[]> =>
      Promise.all(Array.from({ length: 5 }, () => fetch(`${server.url}/api/site`)));
    await ask();
    server.limit(50);
    const startedAt = performance.now();
    await ask();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(75);
  });
});
