import '../support/real-sockets.js';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { PLUGINS } from '../../src/app/plugins.js';
import { createLogger } from '../../src/observe/logger.js';
import type { Asked, Question } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const PAGE = '/api/handles/21.T11998/page';
const demo = await startDemoServer();

const NONE = { name: 'nothing else', match: {}, answer: 403 };

const start = (rules: readonly object[], env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy({
    UPSTREAM_URL: demo.url,
    HTTP_TRUSTED_PROXIES: 'loopback',
    V2_ENABLED: 'true',
    V2_ANONYMOUS_READ: 'true',
    REVERSE_LOOKUP_URL: demo.url,
    TRAFFIC_RULES: JSON.stringify(rules),
    ...env,
  });

/** Whether a rule with `match` rejects the request. */
async function isMatched(match: object, target: string, question?: Question): Promise<boolean> {
  const proxy = await start([{ name: 'tested', match, answer: 403 }]);
  return (await proxy.ask(target, question)).status === 403;
}

const from = (address: string): Question => ({ headers: { 'X-Forwarded-For': address } });
const POST: Question = { method: 'POST' };
const BATCH: Question = { method: 'POST', body: '{"handles":["21.T11998/page"]}' };
const MESSAGE = { Accept: 'application/x-hdl-message', 'Content-Type': 'application/x-hdl-message' };
const agent = (name: string): Question => ({ headers: { 'User-Agent': name } });

describe('traffic rules', () => {
  describe('rule', () => {
    test.each<[string, object, string, Question | undefined, boolean]>([
      ['an address', { network: '192.0.2.7' }, PAGE, from('192.0.2.7'), true],
      ['a network', { network: ['198.51.100.0/24', '192.0.2.0/24'] }, PAGE, from('192.0.2.7'), true],
      ['no other network', { network: '192.0.2.0/24' }, PAGE, from('192.0.3.7'), false],
      ['an IPv6 network', { network: '2001:db8::/32' }, PAGE, from('2001:db8:7::1'), true],
      ['an IPv4 address as IPv6', { network: '192.0.2.0/24' }, PAGE, from('::ffff:192.0.2.7'), true],
      ['an agent in any case', { userAgent: '*gptbot*' }, PAGE, agent('Mozilla GPTBot/1.2'), true],
      ['no other agent', { userAgent: '*gptbot*' }, PAGE, agent('curl/8'), false],
      ['a missing agent', { userAgent: '*' }, PAGE, undefined, true],
      ['a method', { method: 'POST' }, '/api/sessions', { method: 'POST' }, true],
      ['no other method', { method: ['PUT', 'DELETE'] }, PAGE, undefined, false],
      ['the record interface', { interface: 'record' }, PAGE, undefined, true],
      ['ePIC v2', { interface: 'v2' }, '/api/v2/handles/21.T11998/page', undefined, true],
      ['redirects', { interface: 'redirect' }, '/21.T11998/page', undefined, true],
      ['lists', { interface: 'list' }, '/api/handles?prefix=21.T11998', undefined, true],
      ['native messages', { interface: 'native' }, '/', { method: 'POST', headers: MESSAGE }, true],
      ['no ordinary POST as a native message', { interface: 'native' }, '/', { method: 'POST' }, false],
      ['no other interface', { interface: ['v2', 'redirect'] }, PAGE, undefined, false],
      ['a prefix', { prefix: '21.t11998' }, PAGE, undefined, true],
      ['a derived prefix', { prefix: '21.*' }, PAGE, undefined, true],
      ['the prefix of a collection', { prefix: '21.T11998' }, '/api/v2/handles/21.T11998', undefined, true],
      ['the prefix of a new handle', { prefix: '21.T11998' }, '/api/v2/handles/21.T11998', POST, true],
      ['the prefix of a reverse lookup', { prefix: '21.T11998' }, '/hrls/handles/21.T11998', undefined, true],
      [
        'a handle with a slash after it',
        { handle: '21.T11998/a' },
        '/api/v2/handles/21.T11998/a/',
        undefined,
        true,
      ],
      ['a reverse lookup as a miss', { reads: 'misses' }, '/hrls/handles/21.T11998', undefined, true],
      ['no prefix with the same first characters', { prefix: '21.T1' }, PAGE, undefined, false],
      ['a handle', { handle: '21.T11998/PA*' }, PAGE, undefined, true],
      ['a handle, percent-encoded', { handle: '21.T11998/page' }, '/21.T11998%2Fpag%65', undefined, true],
      ['no other handle', { handle: '21.T11998/*x' }, PAGE, undefined, false],
      ['misses', { reads: 'misses' }, PAGE, undefined, true],
      ['no write as a miss', { reads: 'misses' }, PAGE, { method: 'PUT', body: '[]' }, false],
      ['a batch as a miss', { reads: 'misses' }, '/api/resolve', BATCH, true],
      ['no miss when it is limited to hits', { reads: 'hits' }, PAGE, undefined, false],
      ['credentials', { credentials: true }, PAGE, { headers: { Authorization: 'Basic eDp4' } }, true],
      ['missing credentials', { credentials: false }, PAGE, undefined, true],
      ['everything', {}, PAGE, undefined, true],
      ['only when all conditions match', { method: 'GET', prefix: '20.500' }, PAGE, undefined, false],
    ])('matches %s', async (_what, match, target, question, expected) => {
      expect(await isMatched(match, target, question)).toBe(expected);
    });
  });

  test('count a lookup of a prefix as a miss, also while an entry has its name', async () => {
    const proxy = await start([{ name: 'tested', match: { reads: 'hits' }, answer: 403 }]);
    const read = async (path: string) => (await proxy.ask(path)).status;
    expect([await read('/api/handles/21.T11998/'), await read('/api/handles/21.T11998/')]).toEqual([
      404, 403,
    ]);
    expect(await read('/hrls/handles/21.T11998')).not.toBe(403);
  });

  test('count a read with credentials as a miss, also while its record is in memory', async () => {
    const proxy = await start([
      { name: 'tested', match: { reads: 'misses', credentials: true }, answer: 403 },
    ]);
    expect((await proxy.ask(PAGE)).status).toBe(200);
    expect((await proxy.ask(PAGE, { headers: { Authorization: 'Basic eDp4' } })).status).toBe(403);
  });

  test('match a POST of a native message as a redirect without the native protocol', async () => {
    const refused = { name: 'tested', match: { interface: 'redirect' }, answer: 403 };
    const proxy = await startProxy(
      { UPSTREAM_URL: demo.url, TRAFFIC_RULES: JSON.stringify([refused]) },
      { plugins: PLUGINS.filter(({ name }) => name !== 'native') },
    );
    const { status } = await proxy.ask('/21.T11998/page', { method: 'POST', headers: MESSAGE });
    expect(status).toBe(403);
  });

  test('are evaluated up to the first match', async () => {
    const proxy = await start([
      { name: 'own', match: { network: '192.0.2.0/24' }, class: 'preferred' },
      { name: 'others', match: {}, answer: 429 },
    ]);
    expect((await proxy.ask(PAGE, from('192.0.2.1'))).status).toBe(200);
    const refused = await proxy.ask(PAGE, from('198.51.100.1'));
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '60']);
  });

  test('reject a request without forwarding it, in the error format of the interface', async () => {
    const proxy = await start([NONE]);
    demo.reset();
    const answers = [
      await proxy.ask(PAGE),
      await proxy.ask('/21.T11998/page', { headers: { Accept: 'text/html' } }),
      await proxy.ask('/api/v2/handles/21.T11998/page'),
      await proxy.ask(PAGE, { method: 'PUT', headers: { Authorization: 'Basic eDp4' } }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect(answers[1]?.headers['content-type']).toContain('text/html');
    expect(demo.asked).toBe(0);
  });

  describe('miss limit', () => {
    const CRAWLERS = {
      name: 'crawlers',
      match: { userAgent: '*Bot*', reads: 'misses' },
      limit: { perMinute: 1, by: 'rule' },
    };
    const ask = (proxy: Proxy, target: string): Promise<Asked> => proxy.ask(target, agent('SomeBot'));

    test('ignores hits, prepared or not, and adds no RateLimit headers to them', async () => {
      const proxy = await start([CRAWLERS]);
      expect((await ask(proxy, PAGE)).headers['ratelimit']).toBe('"crawlers";r=0;t=60');
      for (const target of [PAGE, PAGE, `${PAGE}?pretty`, '/21.T11998/page', '/21.T11998/page']) {
        const hit = await ask(proxy, target);
        expect([hit.status < 400, hit.headers['ratelimit']]).toEqual([true, undefined]);
      }
      expect((await ask(proxy, '/api/handles/21.T11998/DEMO')).status).toBe(429);
      expect((await proxy.ask('/api/handles/21.T11998/DEMO', agent('curl'))).status).toBe(200);
      expect((await ask(proxy, '/api/handles/21.T11998/DEMO')).status).toBe(200);
    });

    test.each(['/api/handles/21.T11998/no1', '/21.T11998/no1', '/api/v2/handles/21.T11998/no1'])(
      'counts a miss for %s',
      async (target) => {
        const proxy = await start([CRAWLERS]);
        await ask(proxy, PAGE);
        demo.reset();
        expect([(await ask(proxy, target)).status, demo.asked]).toEqual([429, 0]);
      },
    );
  });

  describe('shadow rule', () => {
    const SHADOW = { name: 'tried', match: {}, limit: { perMinute: 1, by: 'rule' }, shadow: true };

    test('counts matches without rejecting requests or adding headers', async () => {
      const proxy = await start([SHADOW]);
      for (let times = 0; times < 3; times++) {
        const answer = await proxy.ask(PAGE);
        expect([answer.status, answer.headers['ratelimit']]).toEqual([200, undefined]);
      }
      expect(await countsOf(proxy)).toEqual({ 'tried matched': 1, 'tried shadowed': 2 });
    });

    test('without an action counts hits too, prepared or not', async () => {
      const proxy = await start([{ name: 'watched', match: {}, shadow: true }]);
      for (let times = 0; times < 4; times++) await proxy.ask(PAGE);
      expect(await countsOf(proxy)).toEqual({ 'watched matched': 4 });
    });

    test('does not prevent the next rule from applying', async () => {
      const proxy = await start([SHADOW, { name: 'real', match: {}, limit: { perMinute: 2, by: 'rule' } }]);
      const statuses: number[] = [];
      for (let times = 0; times < 3; times++) statuses.push((await proxy.ask(PAGE)).status);
      expect(statuses).toEqual([200, 200, 429]);
      expect(await countsOf(proxy)).toEqual({
        'tried matched': 1,
        'tried shadowed': 2,
        'real matched': 2,
        'real limited': 1,
      });
    });
  });

  test('log each matching request when log is true', async () => {
    const lines: string[] = [];
    const to = new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(...chunk.toString().trim().split('\n'));
        done();
      },
    });
    const rules = JSON.stringify([{ name: 'watched', match: { prefix: '21.T11998' }, log: true }]);
    const proxy = await startProxy(
      { UPSTREAM_URL: demo.url, TRAFFIC_RULES: rules },
      { logger: createLogger({ level: 'info', destination: to }) },
    );
    await proxy.ask(PAGE, agent('curl/8'));
    await proxy.ask(PAGE, agent('curl/8'));
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged.filter(({ msg }) => msg === 'traffic rule matched')).toEqual([
      expect.objectContaining({
        rule: 'watched',
        result: 'matched',
        handle: '21.T11998/page',
        userAgent: 'curl/8',
      }),
      expect.objectContaining({ rule: 'watched' }),
    ]);
  });
});

/** Returns the nonzero request counts by rule and result. */
async function countsOf(proxy: Proxy): Promise<Record<string, number>> {
  const metrics = (await proxy.metrics()) as {
    name: string;
    values: { labels: { rule?: string; result?: string }; value: number }[];
  }[];
  const counted = metrics.find(({ name }) => name === 'handle_proxy_traffic_rule_requests_total');
  return Object.fromEntries(
    (counted?.values ?? [])
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => [`${labels.rule} ${labels.result}`, value]),
  );
}
