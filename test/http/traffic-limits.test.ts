import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import type { Asked } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const PATH = '/api/handles/21.T11998/page';
const demo = await startDemoServer();

const start = (env: Record<string, string> = {}, limit: object = {}): Promise<Proxy> =>
  startProxy({
    ...(env['UPSTREAMS'] === undefined && { UPSTREAM_URL: demo.url }),
    TRAFFIC_RULES: JSON.stringify([{ name: 'all', limit: { perMinute: 2, ...limit } }]),
    ...env,
  });

const askFrom = (proxy: Proxy, forwardedFor: string, path = PATH): Promise<Asked> =>
  proxy.ask(path, { headers: { 'X-Forwarded-For': forwardedFor } });

/** Sends one request per address in sequence through a trusted local proxy and returns the statuses. */
const statusesFrom = (...addresses: string[]): Promise<number[]> => statusesBy({}, addresses);

async function statusesBy(limit: object, addresses: readonly string[]): Promise<number[]> {
  const proxy = await start({ HTTP_TRUSTED_PROXIES: 'loopback,10.0.0.0/8' }, limit);
  const statuses = [];
  for (const address of addresses) statuses.push((await askFrom(proxy, address)).status);
  return statuses;
}

describe('traffic limit (rate limit)', () => {
  test('returns an uncacheable 429 with Retry-After above the limit, without an upstream request', async () => {
    const proxy = await start();
    for (let count = 0; count < 2; count++) await proxy.ask(PATH);
    demo.reset();
    const answer = await proxy.ask(PATH, { headers: { Origin: 'https://example.org' } });
    expect(answer.status).toBe(429);
    expect(answer.headers).toMatchObject({
      'retry-after': '30',
      'ratelimit-policy': '"all";q=2;w=60',
      ratelimit: '"all";r=0;t=60',
      'cache-control': 'no-store',
      'access-control-allow-origin': 'https://example.org',
    });
    expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 3 });
    expect(demo.asked).toBe(0);
  });

  test('a request above the limit is no use of the record in memory', async () => {
    const proxy = await start();
    const hits = async (): Promise<number | undefined> => {
      const [copy] = await proxy.app.operations.inspect('21.T11998/page');
      return copy?.hits;
    };
    for (let count = 0; count < 2; count++) await proxy.ask(PATH);
    const before = await hits();
    for (let index = 1; index < 5; index++)
      expect((await proxy.ask(`${PATH}?index=${index}`)).status).toBe(429);
    expect(await hits()).toBe(before);
  });

  test('counts hits as well as misses, and refills tokens one by one', async () => {
    const proxy = await start();
    expect((await proxy.ask(PATH)).headers['ratelimit']).toBe('"all";r=1;t=30');
    const hit = await proxy.ask(PATH);
    expect(hit.headers).toMatchObject({ 'ratelimit-policy': '"all";q=2;w=60', ratelimit: '"all";r=0;t=60' });
    expect(hit.headers['cache-status']).toContain('hit');
    proxy.pass(15_000);
    expect((await proxy.ask(PATH)).headers['retry-after']).toBe('15');
    proxy.pass(15_000);
    expect((await proxy.ask(PATH)).status).toBe(200);
    expect((await proxy.ask(PATH)).status).toBe(429);
  });

  test('names the rule and its time in headers and errors, also with quotes in the name', async () => {
    const rule = { name: 'all "bots" \\', limit: { perSecond: 3 } };
    const proxy = await start({ TRAFFIC_RULES: JSON.stringify([rule]) });
    const { headers } = await proxy.ask(PATH);
    // A third of a second is less than the whole seconds of the header.
    expect([headers['ratelimit-policy'], headers['ratelimit']]).toEqual([
      String.raw`"all \"bots\" \\";q=3;w=1`,
      String.raw`"all \"bots\" \\";r=2;t=1`,
    ]);
    for (let times = 0; times < 2; times++) await proxy.ask(PATH);
    expect((await proxy.ask(PATH)).text).toContain('at most 3 in a second');
  });

  test('says in the error that the limit is for a minute', async () => {
    const proxy = await start();
    for (let times = 0; times < 2; times++) await proxy.ask(PATH);
    expect((await proxy.ask(PATH)).text).toContain('rule all: at most 2 in a minute');
  });

  test('allows a burst up to the token bucket capacity', async () => {
    const proxy = await start({}, { perSecond: 1, perMinute: undefined, burst: 3 });
    const statuses = async (times: number): Promise<number[]> => {
      const seen: number[] = [];
      for (let count = 0; count < times; count++) seen.push((await proxy.ask(PATH)).status);
      return seen;
    };
    expect(await statuses(4)).toEqual([200, 200, 200, 429]);
    proxy.pass(2000);
    expect(await statuses(3)).toEqual([200, 200, 429]);
  });

  test('shares a bucket among the addresses of a /24 (by: network)', async () => {
    const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.3.1'];
    expect(await statusesBy({ by: 'network' }, addresses)).toEqual([200, 200, 429, 200]);
  });

  test('shares a bucket among all clients (by: rule)', async () => {
    const addresses = ['192.0.2.1', '198.51.100.2', '2001:db8::1'];
    expect(await statusesBy({ by: 'rule' }, addresses)).toEqual([200, 200, 429]);
  });

  test('counts redirects and ePIC v2 requests in the same bucket', async () => {
    const proxy = await start({ V2_ENABLED: 'true' });
    await proxy.ask('/21.T11998/page');
    await proxy.ask('/21.T11998/page');
    const [v2, page] = [await proxy.ask('/api/v2/handles/'), await proxy.ask('/21.T11998/page')];
    expect([v2.status, page.status]).toEqual([429, 429]);
    expect(Number(v2.headers['retry-after'])).toBeGreaterThan(0);
  });

  test('gives each IPv4 address a separate bucket', async () => {
    const [a, b] = ['192.0.2.1', '192.0.2.2'];
    expect(await statusesFrom(a, a, a, b, b, b)).toEqual([200, 200, 429, 200, 200, 429]);
  });

  test('treats an IPv4-mapped IPv6 address as its IPv4 address', async () => {
    expect(await statusesFrom('192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1')).toEqual([200, 200, 429]);
  });

  test('shares a bucket among the addresses of an IPv6 /56 network', async () => {
    const [a, b, c] = ['2001:db8:0:1200::1', '2001:db8:0:12ff:1:2:3:4', '2001:DB8::12ab:0:0:0:9'];
    expect(await statusesFrom(a, b, c, '2001:db8:0:1300::1')).toEqual([200, 200, 429, 200]);
  });

  test.each([
    ['IPv4', '192.0.2.1', '192.0.2.1:5001', '192.0.2.1:5002'],
    ['IPv6', '2001:db8::1', '[2001:db8::1]:5001', '[2001:db8::1]'],
  ])('ignores a port after the address (%s)', async (_family, ...addresses) => {
    expect(await statusesFrom(...addresses)).toEqual([200, 200, 429]);
  });

  test('recognises a trusted proxy whose address is followed by a port', async () => {
    const through = (client: string): string => `${client}, 10.1.2.3:4711`;
    expect(await statusesFrom(through('192.0.2.1'), through('192.0.2.2'), through('192.0.2.3'))).toEqual([
      200, 200, 200,
    ]);
  });

  test('uses only the address appended by a trusted proxy', async () => {
    const made = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((forged) => `${forged}, 198.51.100.7, 10.0.0.1`);
    expect(await statusesFrom(...made)).toEqual([200, 200, 429]);
  });

  test('ignores X-Forwarded-For when no proxy is trusted', async () => {
    const proxy = await start();
    for (const address of ['192.0.2.1', '192.0.2.2']) await askFrom(proxy, address);
    expect((await askFrom(proxy, '192.0.2.3')).status).toBe(429);
  });

  test('is disabled by default', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    for (let count = 0; count < 50; count++) expect((await proxy.ask(PATH)).status).not.toBe(429);
  });
});
