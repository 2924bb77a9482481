// The client of a request behind trusted proxies: X-Forwarded-For, Forwarded (RFC 7239), and warnings about wrong trust.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { testContext } from '../support/context.js';
import { startDemoServer } from '../support/demo.js';
import { configFrom, problemsFrom } from '../support/load-config.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const PAGE = '/api/handles/21.T11998/page';
const demo = await startDemoServer();

const OURS = { name: 'tested', match: { network: ['192.0.2.7', '2001:db8:7::1'] }, answer: 403 };

const start = (proxies: string, logger = testContext().log): Promise<Proxy> =>
  startProxy(
    { UPSTREAM_URL: demo.url, HTTP_TRUSTED_PROXIES: proxies, TRAFFIC_RULES: JSON.stringify([OURS]) },
    { logger },
  );

describe('client behind a trusted proxy', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['the last address of X-Forwarded-For', { 'X-Forwarded-For': '203.0.113.9, 192.0.2.7' }, true],
    ['no address further left', { 'X-Forwarded-For': '192.0.2.7, 203.0.113.9' }, false],
    ['the address before empty elements', { 'X-Forwarded-For': ' ,192.0.2.7, ,' }, true],
    ['the address before other trusted proxies', { 'X-Forwarded-For': '192.0.2.7,, 127.0.0.1' }, true],
    ['no address of an empty list', { 'X-Forwarded-For': ' , ' }, false],
    ['for of Forwarded', { Forwarded: 'for=192.0.2.7' }, true],
    ['for of the last element', { Forwarded: 'for=203.0.113.9, FOR=192.0.2.7;proto=https' }, true],
    ['no element further left', { Forwarded: 'for=192.0.2.7, for=203.0.113.9' }, false],
    ['for before other trusted proxies', { Forwarded: 'for=192.0.2.7,for=127.0.0.1' }, true],
    ['for with a port', { Forwarded: 'proto=https;for="192.0.2.7:4711"' }, true],
    ['for as an IPv6 address', { Forwarded: 'for="[2001:db8:7::1]:4711";by=_x, ' }, true],
    ['no element before one without for', { Forwarded: 'for=192.0.2.7, proto=https' }, false],
    ['no element in a quoted string', { Forwarded: 'host="a, for=192.0.2.7";for=203.0.113.9' }, false],
    ['no element in an open string', { Forwarded: 'for=203.0.113.9;host="a, for=192.0.2.7' }, false],
    ['no hidden client', { Forwarded: 'for=192.0.2.7, for=_hidden' }, false],
    [
      'X-Forwarded-For rather than Forwarded',
      { 'X-Forwarded-For': '203.0.113.9', Forwarded: 'for=192.0.2.7' },
      false,
    ],
  ])('is %s', async (_what, headers, isFound) => {
    const proxy = await start('loopback');
    expect((await proxy.ask(PAGE, { headers })).status).toBe(isFound ? 403 : 200);
  });

  test('is never what an untrusted peer claims', async () => {
    const proxy = await start('10.0.0.0/8');
    for (const name of ['X-Forwarded-For', 'Forwarded']) {
      const value = name === 'Forwarded' ? 'for=192.0.2.7' : '192.0.2.7';
      expect((await proxy.ask(PAGE, { headers: { [name]: value } })).status).toBe(200);
    }
  });
});

describe('wrong trust in proxies', () => {
  const warnings = (lines: Record<string, unknown>[]): unknown[] =>
    lines.filter(({ level }) => level === 'warn');

  test.each(['X-Forwarded-For', 'Forwarded'])('is logged once if %s is ignored', async (name) => {
    const { log, lines } = testContext();
    const proxy = await start('10.0.0.0/8', log);
    for (const handle of ['a', 'b', 'c'])
      await proxy.ask(`/api/handles/21.T11998/${handle}`, { headers: { [name]: 'for=192.0.2.7' } });
    expect(warnings(lines)).toMatchObject([
      {
        msg: 'forwarded client address ignored',
        peer: '127.0.0.1',
        remedy: expect.stringContaining('http.trustedProxies') as string,
      },
    ]);
  });

  test('is logged again after a reload that names another wrong proxy', async () => {
    const { log, lines } = testContext();
    const proxy = await start('10.0.0.0/8', log);
    const claim = () => proxy.ask(PAGE, { headers: { 'X-Forwarded-For': '192.0.2.7' } });
    await claim();
    expect(warnings(lines)).toHaveLength(1);
    proxy.app.reload(configFrom({ env: { UPSTREAM_URL: demo.url, HTTP_TRUSTED_PROXIES: '10.0.0.1' } }));
    await claim();
    await claim();
    expect(warnings(lines)).toHaveLength(2);
  });

  test.each(['0.0.0.0/0', '10.0.0.0/8, ::/0'])(
    'is an error of the configuration for all addresses: %s',
    (given) => {
      expect(problemsFrom({ env: { HTTP_TRUSTED_PROXIES: given } })[0]).toContain('(not `/0`)');
    },
  );

  test('is not logged for clients without such headers, or behind a trusted proxy', async () => {
    const { log, lines } = testContext();
    const proxy = await start('loopback', log);
    await proxy.ask(PAGE, { headers: { 'X-Forwarded-For': '203.0.113.9', Forwarded: 'for=203.0.113.9' } });
    await proxy.ask(PAGE);
    expect(warnings(lines)).toEqual([]);
  });
});
