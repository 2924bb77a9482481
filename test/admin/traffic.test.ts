// These tests use the admin listener of the real app.
import '../support/real-sockets.js';
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const demo = await startDemoServer();
const RULES = [
  { name: 'own', match: { network: '203.0.113.0/24' }, class: 'preferred' },
  { name: 'bots', match: { userAgent: '*Bot*' }, answer: 403 },
];

const start = (env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy({
    UPSTREAM_URL: demo.url,
    HTTP_TRUSTED_PROXIES: 'loopback',
    TRAFFIC_ENUMERATION_PER_MINUTE: '3',
    TRAFFIC_RULES: JSON.stringify(RULES),
    ...env,
  });

let guesses = 0;
const guess = async (proxy: Proxy, address: string, agent = 'guesser/1'): Promise<number> => {
  const headers = { 'X-Forwarded-For': address, 'User-Agent': agent };
  return (await proxy.ask(`/api/handles/21.T11998/none-${++guesses}`, { headers })).status;
};

const trafficOf = async (proxy: Proxy): Promise<unknown> =>
  (await request(proxy.app.admin).get('/traffic').expect(200)).body as unknown;

describe('traffic admin API', () => {
  test('shows the rules, the networks and agents with the most misses, and the limited networks', async () => {
    const proxy = await start();
    expect(await trafficOf(proxy)).toMatchObject({ networks: [], agents: [], blocked: [] });
    for (let times = 0; times < 6; times++) await guess(proxy, '192.0.2.7');
    await guess(proxy, '203.0.113.1', 'curl');
    await guess(proxy, '198.51.100.1', 'SomeBot');
    expect(await trafficOf(proxy)).toEqual({
      rules: [
        { name: 'own', matched: 1, limited: 0, shadowed: 0 },
        { name: 'bots', matched: 0, limited: 1, shadowed: 0 },
      ],
      networks: [
        { name: '192.0.2.0/24', misses: 6 },
        { name: '198.51.100.0/24', misses: 1 },
        { name: '203.0.113.0/24', misses: 1 },
      ],
      agents: [
        { name: 'guesser/1', misses: 6 },
        { name: 'SomeBot', misses: 1 },
        { name: 'curl', misses: 1 },
      ],
      blocked: [{ network: '192.0.2.0/24', until: '2026-11-21T10:10:00.000Z', reason: 'unknown-names' }],
    });
  });

  test.each([
    ['192.0.2.7', '192.0.2.0%2F24'],
    ['192.0.2.7', '192.0.2.0/24'],
    ['192.0.2.7', '192.0.2.99'],
    ['2001:db8:0:12ab::1', '2001:db8:0:1200::%2F56'],
    ['2001:db8:0:12ab::1', '2001:db8:0:1200:0:0:0:0/56'],
  ])('lifts the limit on %s in response to DELETE of %s', async (address, path) => {
    const proxy = await start();
    for (let times = 0; times < 4; times++) await guess(proxy, address);
    expect(await guess(proxy, address)).toBe(429);
    const end = () => request(proxy.app.admin).delete(`/traffic/blocked/${path}`);
    await end().set('Sec-Fetch-Site', 'cross-site').expect(403);
    await end().expect(204, '');
    expect(await trafficOf(proxy)).toMatchObject({ blocked: [] });
    // The count restarts from zero.
    for (let times = 0; times < 4; times++) expect(await guess(proxy, address)).toBe(404);
    expect(await guess(proxy, address)).toBe(429);
    await end().expect(204);
    expect((await end().expect(404)).text).toContain('ADMIN_NOT_BLOCKED');
  });

  test.each(['192.0.2.0%2F16', 'nonsense', '%00', '192.0.2.0/24/1'])(
    'returns 404 for DELETE of %s',
    async (path) => {
      const proxy = await start();
      for (let times = 0; times < 4; times++) await guess(proxy, '192.0.2.7');
      await request(proxy.app.admin).delete(`/traffic/blocked/${path}`).expect(404);
      await request(proxy.app.admin).get('/traffic/blocked/192.0.2.0%2F24').expect(405);
      expect(await guess(proxy, '192.0.2.7')).toBe(429);
    },
  );

  test('requires the admin token when configured', async () => {
    const proxy = await start({ ADMIN_TOKEN: 'a-token-of-the-operator' });
    await request(proxy.app.admin).get('/traffic').expect(401);
    await request(proxy.app.admin).delete('/traffic/blocked/192.0.2.0%2F24').expect(401);
  });
});
