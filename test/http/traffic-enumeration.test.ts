// Networks that guess names get 429 for misses.
import '../support/real-sockets.js';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { createSteadyTime } from '../../src/clock.js';
import { createLogger } from '../../src/observe/logger.js';
import { type Asked, type Question } from '../support/ask.js';
import { createCertificate } from '../support/certificate.js';
import { basic, startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { configFrom } from '../support/load-config.js';
import { type Proxy, STARTED_AT, startProxy } from '../support/proxy.js';
import { metric } from '../support/sharing-proxies.js';
import { USER01 } from '../support/v2.js';
import { textValue } from '../../src/dev-server/seed.js';

const PAGE = '/api/handles/21.T11998/page';
const demo = await startDemoServer();
/** The same server as `demo`, on plain HTTP, where it ignores logins. */
const plain = await demo.listenInsecurely(0);
const { key, cert, fingerprint } = await createCertificate();
const overTls = await startDemoServer({ tls: { key, cert } });
const TLS = { UPSTREAM_URL: overTls.url, UPSTREAM_FINGERPRINT: fingerprint };

const ENV = {
  UPSTREAM_URL: demo.url,
  LOG_LEVEL: 'silent',
  HTTP_TRUSTED_PROXIES: '127.0.0.1,10.0.0.0/8',
  V2_ANONYMOUS_READ: 'true',
  TRAFFIC_ENUMERATION_PER_MINUTE: '5',
};
const GUESSER = '198.51.100.7';
const OTHER = '192.0.2.1';

const start = (env: Record<string, string> = {}): Promise<Proxy> => startProxy({ ...ENV, ...env });

const from = (address: string, question: Question = {}): Question => ({
  ...question,
  headers: { ...question.headers, 'X-Forwarded-For': address },
});

let guesses = 0;
const guess = (): string => `21.T11998/guess-${++guesses}`;

/** Requests `times` unknown handles. */
async function guessNames(proxy: Proxy, address: string, times = 6): Promise<Asked[]> {
  const answers = [];
  for (let count = 0; count < times; count++) {
    answers.push(await proxy.ask(`/api/handles/${guess()}`, from(address)));
  }
  return answers;
}

const statusesOf = (answers: readonly Asked[]): number[] => answers.map(({ status }) => status);

/** Whether a miss from `address` is rejected without an upstream request. */
async function isLimited(proxy: Proxy, address: string, server = demo): Promise<boolean> {
  server.reset();
  const { status } = await proxy.ask(`/api/handles/${guess()}`, from(address));
  expect(server.asked).toBe(status === 429 ? 0 : 1);
  return status === 429;
}

describe('enumeration limit (traffic.enumeration)', () => {
  test('rejects a guessing network with 429 and Retry-After, without an upstream request', async () => {
    const proxy = await start();
    await proxy.ask(PAGE, from(OTHER));
    demo.reset();
    const answers = await guessNames(proxy, GUESSER, 9);
    expect(statusesOf(answers)).toEqual([404, 404, 404, 404, 404, 404, 429, 429, 429]);
    expect(demo.asked).toBe(6);
    expect(answers.at(-1)?.headers).toMatchObject({ 'retry-after': '600', 'cache-control': 'no-store' });
    expect(JSON.parse(answers.at(-1)?.text ?? '')).toMatchObject({ responseCode: 3 });

    // Hits from this network and requests from other networks are unaffected.
    for (const path of [PAGE, `${PAGE}?pretty`, '/21.T11998/page', '/api/v2/handles/21.T11998/page']) {
      expect((await proxy.ask(path, from(GUESSER))).status).toBeLessThan(400);
    }
    expect(await isLimited(proxy, OTHER)).toBe(false);
    expect(await metric(proxy, 'handle_proxy_limited_networks')).toBe(1);
    expect(await metric(proxy, 'handle_proxy_limited_misses_total')).toBe(3);

    proxy.pass(599_000);
    expect(await isLimited(proxy, GUESSER)).toBe(true);
    proxy.pass(1000);
    expect(await isLimited(proxy, GUESSER)).toBe(false);
  });

  test('ends after ten minutes, however the wall clock is set meanwhile', async () => {
    const machine = { wall: STARTED_AT, monotonic: 0 };
    const wall = (): number => machine.wall;
    const now = createSteadyTime({ wall, monotonic: () => machine.monotonic });
    const proxy = await startProxy(ENV, { clock: { wall, now } });
    await guessNames(proxy, GUESSER);
    expect(await isLimited(proxy, GUESSER)).toBe(true);
    machine.wall -= 86_400_000;
    machine.monotonic += 599_000;
    expect(await isLimited(proxy, GUESSER)).toBe(true);
    machine.monotonic += 1000;
    expect(await isLimited(proxy, GUESSER)).toBe(false);
  });

  test('counts uncached includes as misses and still serves cached locations', async () => {
    const proxy = await start();
    const list = (xml: string) => [textValue(1, '10320/loc', `<locations>${xml}</locations>`)];
    const include = (handle: string): string => `<include>${handle}</include>`;
    demo.put('21.T11998/cached-part', list('<location href="https://cached.example.org/"/>'));
    demo.put('21.T11998/guesses', list(Array.from({ length: 12 }, () => include(guess())).join('')));
    const parts = Array.from({ length: 3 }, () => include(guess())).join('');
    demo.put('21.T11998/whole', list(`${include('21.T11998/cached-part')}${parts}`));
    await proxy.ask('/21.T11998/cached-part', from(OTHER));
    await proxy.ask('/api/handles/21.T11998/whole', from(OTHER));
    await proxy.ask('/21.T11998/guesses', from(GUESSER));
    expect(await isLimited(proxy, GUESSER)).toBe(true);
    demo.reset();
    const { status, headers } = await proxy.ask('/21.T11998/whole', from(GUESSER));
    expect([status, headers.location]).toEqual([302, 'https://cached.example.org/']);
    expect(headers['cache-control']).toBe('no-store');
    expect(demo.asked).toBe(0);
  });

  const body = (...handles: string[]): Question => ({ method: 'POST', body: JSON.stringify({ handles }) });

  test.each<[string, () => [string, Question?]]>([
    ['the record interface', () => [`/api/handles/${guess()}`]],
    ['authoritative reads', () => [`/api/handles/${guess()}?auth=true`]],
    ['forwarded reads', () => [`/api/handles/${guess()}?publicOnly=false`]],
    ['redirects', () => [`/${guess()}`]],
    ['redirects with an unchecked login', () => [`/${guess()}`, withLogin]],
    ['ePIC v2', () => [`/api/v2/handles/${guess()}`]],
    ['POST of a handle', () => [`/api/handles/${guess()}`, { method: 'POST' }]],
    ['a conditional PUT', () => [`/api/handles/${guess()}`, conditional]],
  ])('counts and rejects guesses through %s', async (_interface, guessed) => {
    const proxy = await start();
    for (let times = 0; times < 6; times++) {
      const [path, question] = guessed();
      await proxy.ask(path, from(GUESSER, question));
    }
    demo.reset();
    const [path, question] = guessed();
    expect((await proxy.ask(path, from(GUESSER, question))).status).toBe(429);
    expect(demo.asked).toBe(0);
    expect(await isLimited(proxy, GUESSER)).toBe(true);
  });

  const conditional: Question = { method: 'PUT', headers: { 'If-Match': '*' }, body: '[]' };

  const withLogin: Question = { headers: { Authorization: 'Basic eDp4' } };

  describe('guesses with an unchecked login', () => {
    test.each<[string, Record<string, string>, string, string]>([
      ['over plain HTTP', { UPSTREAM_URL: plain.url }, 'Basic eDp4', '/api/handles/'],
      [
        'over plain HTTP through ePIC v2',
        { UPSTREAM_URL: plain.url },
        basic('300:21.T1/1', 'x'),
        '/api/v2/handles/',
      ],
      ['without a name, over HTTPS', TLS, 'Handle cnonce="bm9uY2U="', '/api/handles/'],
    ])('are counted and rejected: %s', async (_where, env, Authorization, path) => {
      const proxy = await start(env);
      const statuses = [];
      for (let times = 0; times < 7; times++) {
        const answer = await proxy.ask(path + guess(), from(GUESSER, { headers: { Authorization } }));
        statuses.push(answer.status);
      }
      expect(statuses).toEqual([404, 404, 404, 404, 404, 404, 429]);
    });
  });

  test('counts each guess in a batch, and rejects only the misses of a later batch', async () => {
    const proxy = await start();
    await proxy.ask(PAGE, from(OTHER));
    await proxy.ask(
      '/api/resolve',
      from(GUESSER, body(guess(), guess(), guess(), guess(), guess(), guess())),
    );
    demo.reset();
    const { text } = await proxy.ask('/api/resolve', from(GUESSER, body('21.T11998/page', guess())));
    const elements = JSON.parse(text) as { status: number }[];
    expect([elements.map(({ status }) => status), demo.asked]).toEqual([[200, 429], 0]);
  });

  test('rejects a DELETE without an upstream request, and without revealing whether the handle exists', async () => {
    const proxy = await start();
    for (let times = 0; times < 6; times++) {
      const { status } = await proxy.ask(`/api/handles/${guess()}`, from(GUESSER, { method: 'DELETE' }));
      expect(status).toBe(404);
    }
    demo.reset();
    const refused = await proxy.ask(`/api/handles/${guess()}`, from(GUESSER, { method: 'DELETE' }));
    expect([refused.status, demo.asked]).toEqual([403, 0]);
  });

  test('counts guesses, but not failed reads', async () => {
    const proxy = await start();
    const forwarded = (name: string): string => `/api/handles/${name}?publicOnly=false`;
    demo.fail('error');
    for (let count = 0; count < 5; count++) await proxy.ask(forwarded(guess()), from(GUESSER));
    demo.heal();
    const answers = [];
    for (let count = 0; count < 7; count++) answers.push(await proxy.ask(forwarded(guess()), from(GUESSER)));
    expect(statusesOf(answers)).toEqual([404, 404, 404, 404, 404, 404, 429]);
  });

  describe('unlimited clients', () => {
    test('include a harvester that requests existing handles', async () => {
      for (let at = 0; at < 30; at++) demo.put(`21.T11998/h-${at}`, [textValue(1, 'URL', 'https://e.org/')]);
      const proxy = await start();
      for (let at = 0; at < 30; at++) await proxy.ask(`/api/handles/21.T11998/h-${at}`, from(OTHER));
      expect(await isLimited(proxy, OTHER)).toBe(false);
    });

    test('include a client that repeats one unknown name in the negative cache', async () => {
      const proxy = await start();
      const path = `/api/handles/${guess()}`;
      for (let times = 0; times < 30; times++) await proxy.ask(path, from(OTHER));
      expect(await isLimited(proxy, OTHER)).toBe(false);
    });

    test('include preferred networks, trusted proxies and logins checked by the Handle server', async () => {
      const own = [{ name: 'own', match: { network: '203.0.113.0/24' }, class: 'preferred' }];
      const proxy = await start({ ...TLS, TRAFFIC_RULES: JSON.stringify(own) });
      for (const address of ['203.0.113.9', '10.1.2.3']) {
        await guessNames(proxy, address, 20);
        expect(await isLimited(proxy, address, overTls)).toBe(false);
      }
      const asOwner: Question = { headers: { Authorization: USER01 } };
      for (let times = 0; times < 20; times++) {
        await proxy.ask(`/api/handles/${guess()}`, from(OTHER, asOwner));
        await proxy.ask(`/api/v2/handles/${guess()}`, from(OTHER, asOwner));
      }
      expect(await isLimited(proxy, OTHER, overTls)).toBe(false);
    });

    test('include local programs, and every client while the limit is 0', async () => {
      const proxy = await start({ HTTP_TRUSTED_PROXIES: '10.0.0.0/8' });
      for (let times = 0; times < 20; times++) await proxy.ask(`/api/handles/${guess()}`);
      expect((await proxy.ask(`/api/handles/${guess()}`)).status).toBe(404);
      const off = await start({ TRAFFIC_ENUMERATION_PER_MINUTE: '0' });
      await guessNames(off, GUESSER, 20);
      expect(await isLimited(off, GUESSER)).toBe(false);
    });
  });

  test.each([
    ['an IPv4 network', '198.51.100.7', '198.51.100.200', '198.51.101.7'],
    ['an IPv6 network', '2001:db8:0:12ab::1', '2001:db8:0:1200::2', '2001:db8:0:1300::1'],
  ])('applies to all of %s, but not to the adjacent network', async (_family, guesser, neighbour, next) => {
    const proxy = await start();
    await guessNames(proxy, guesser);
    expect([await isLimited(proxy, neighbour), await isLimited(proxy, next)]).toEqual([true, false]);
  });

  describe('attacker', () => {
    test('limits only itself by claiming the address of a victim', async () => {
      const proxy = await start();
      await guessNames(proxy, `${OTHER}, ${GUESSER}`);
      expect([await isLimited(proxy, OTHER), await isLimited(proxy, GUESSER)]).toEqual([false, true]);
    });

    test('limits no network by omitting its address', async () => {
      const proxy = await start();
      for (const claimed of ['unknown', '', '::1', 'x'.repeat(4000)]) await guessNames(proxy, claimed, 10);
      expect(await isLimited(proxy, OTHER)).toBe(false);
      expect(await metric(proxy, 'handle_proxy_limited_networks')).toBe(0);
    });
  });

  test('retains limited networks across a reload, and releases them when it is disabled', async () => {
    const proxy = await start();
    await guessNames(proxy, GUESSER);
    const reload = (env: Record<string, string>): void => {
      proxy.app.reload(configFrom({ env: { ...ENV, ...env } }));
    };
    reload({
      TRAFFIC_ENUMERATION_PER_MINUTE: '1000',
      ...fixed({ traffic: { enumeration: { forMs: 60_000 } } }),
    });
    expect(await isLimited(proxy, GUESSER)).toBe(true);
    reload({ TRAFFIC_ENUMERATION_PER_MINUTE: '0' });
    expect(await isLimited(proxy, GUESSER)).toBe(false);
    await expect.poll(() => metric(proxy, 'handle_proxy_limited_networks')).toBe(0);
    reload({});
    expect(await isLimited(proxy, GUESSER)).toBe(false);
  });

  test('is logged once at the start and once at the end', async () => {
    const lines: { msg: string }[] = [];
    const to = new Writable({
      write(chunk: Buffer, _encoding, done) {
        for (const line of chunk.toString().trim().split('\n'))
          lines.push(JSON.parse(line) as { msg: string });
        done();
      },
    });
    const logger = createLogger({ level: 'info', destination: to });
    const proxy = await startProxy({ ...ENV, LOG_LEVEL: 'info' }, { logger });
    await guessNames(proxy, GUESSER, 10);
    const limits = (): object[] => lines.filter(({ msg }) => msg.startsWith('network '));
    const network = {
      network: '198.51.100.0/24',
      reason: 'unknown-names',
      until: '2026-11-21T10:10:00.000Z',
    };
    expect(limits()).toMatchObject([{ level: 'warn', msg: 'network limited for its misses', ...network }]);
    proxy.pass(600_000);
    await expect.poll(limits).toHaveLength(2);
    expect(limits()[1]).toMatchObject({ level: 'info', msg: 'network no longer limited', ...network });
  });
});
