// Secrets in every possible part of a request: they must not appear in logs, metrics, Redis or errors.
import '../support/real-sockets.js';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { basic, startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS } from '../support/demo-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();
const PASSWORD = 'canary-password';
const SESSION = 'canary-session';
const PRIVATE = 'canary-private';
const SECRETS = [PASSWORD, SESSION, PRIVATE];
/**
 * Returns the Base64 forms of a secret in a Basic header, one for each alignment to groups of three bytes.
 */
const encoded = (secret: string): string[] =>
  [0, 1, 2].map((skip) =>
    Buffer.from(`${' '.repeat(skip)}${secret}`)
      .toString('base64')
      .slice(4, -4),
  );
const FORBIDDEN = SECRETS.flatMap((secret) => [secret, ...encoded(secret)]);
const HANDLE = '21.T11998/page';
const PUBLIC = '21.T11998/half-private';

const CREDENTIALS = [
  { Authorization: basic('300:21.T11998/USER01', PASSWORD) },
  { Authorization: `Handle sessionId="${SESSION}"` },
  { Authorization: `Handle version="0", sessionId="${SESSION}", signature="${PASSWORD}", id="x"` },
  { Authorization: `Bearer ${PASSWORD}` },
  { Authorization: PASSWORD },
  { Cookie: `session=${SESSION}; password=${PASSWORD}` },
  { 'X-Api-Key': PASSWORD, 'X-Auth-Token': SESSION, 'Proxy-Authorization': `Basic ${PASSWORD}` },
  { Referer: `https://user:${PASSWORD}@example.org/?s=${SESSION}`, 'User-Agent': SESSION },
  { Host: `user:${PASSWORD}@proxy.example`, Origin: `https://${PASSWORD}.example` },
  {
    'X-Forwarded-For': SESSION,
    Forwarded: `for=${PASSWORD}`,
    Via: `1.1 ${SESSION}`,
    'X-Request-Id': PASSWORD,
  },
];

const privateValue = { ...textValue(7, 'SECRET', PRIVATE), permissions: '1100' };

const targets = [
  `/api/handles/${HANDLE}`,
  `/api/handles/${PUBLIC}`,
  `/api/handles/${HANDLE}?password=${PASSWORD}&sessionId=${SESSION}`,
  `/api/handles/${HANDLE}?index=${PASSWORD}`,
  `/api/handles/${HANDLE}?auth=true&${SESSION}`,
  `/api/handles/${PUBLIC}?publicOnly=false&type=${PRIVATE}`,
  `/api/handles?prefix=21.T11998&token=${SESSION}`,
  `/api/sessions/this?sessionId=${SESSION}`,
  `/api/sessions/${SESSION}`,
  `/api/v2/handles/${PUBLIC}?key=${PASSWORD}`,
  `/api/v2/handles/21.T11998/?SECRET=${PRIVATE}`,
  `/${HANDLE}?noredirect&password=${PASSWORD}`,
  `/${HANDLE}?urlappend=${SESSION}`,
  `/api/%zz?${PASSWORD}`,
  `/api/nothing?${SESSION}`,
];
const BODIES = [
  JSON.stringify([privateValue]),
  `{"password":"${PASSWORD}","sessionId":"${SESSION}"`,
  `sessionId=${SESSION}&password=${PASSWORD}&value=${PRIVATE}`,
];

const linesWith = (secrets: readonly string[], text: string): string[] =>
  text.split('\n').filter((line) => secrets.some((secret) => line.includes(secret)));

describeWithRedis('secret in a request or a record', () => {
  let redis: RedisServer;
  let proxy: BuiltProxy;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  async function sendEverywhere(): Promise<string[]> {
    const errors: string[] = [];
    const send = async (target: string, method: string, headers: Record<string, string>, body?: string) => {
      const given = { method, headers: { ...headers }, ...(body !== undefined && { body }) };
      const answer = await ask(proxy.url, target, given).catch(() => undefined);
      if (answer === undefined) return;
      const own = answer.text.replaceAll(new RegExp(`/api/\\S*`, 'g'), '');
      if (answer.status >= 400) errors.push(`${method} ${target}: ${answer.status} ${own}`);
    };
    for (const headers of CREDENTIALS) {
      for (const target of targets) await send(target, 'GET', headers);
    }
    for (const body of BODIES) {
      for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain']) {
        const headers = { ...CREDENTIALS[0], 'Content-Type': type };
        for (const target of [`/api/handles/${HANDLE}`, '/api/sessions', `/api/v2/handles/${HANDLE}`]) {
          for (const method of ['PUT', 'POST', 'DELETE']) await send(target, method, headers, body);
        }
      }
    }
    return errors;
  }

  test('appears in no log, metric, Redis key, error or statistic', async () => {
    demo.put(PUBLIC, [textValue(1, 'URL', 'https://example.org/public'), privateValue]);
    proxy = await startConnectedProxy({
      UPSTREAM_URL: demo.url,
      REDIS_URL: redis.url,
      LOG_LEVEL: 'trace',
      V2_ANONYMOUS_READ: 'true',
    });
    const errors = await sendEverywhere();
    // Repeats the requests while the Handle server fails, because errors may reveal more than responses.
    demo.fail('reset');
    errors.push(...(await sendEverywhere()));
    demo.heal();
    await ask(proxy.url, `/api/handles/${PUBLIC}`, { headers: { Accept: 'application/json' } });
    const client = new Redis(redis.url);
    const keys = await client.keys('*');
    const values = await Promise.all(keys.map((key) => client.dumpBuffer(key)));
    client.disconnect();
    const metrics = (await ask(proxy.adminUrl, '/metrics')).text;
    const stats = (await ask(proxy.adminUrl, '/stats')).text;
    const seen = await ask(proxy.url, `/api/handles/${PUBLIC}`);
    await proxy.stop();
    const places = {
      log: proxy.output(),
      metrics,
      stats,
      'keys of Redis': keys.join('\n'),
      'values of Redis': values.map((value) => value.toString('latin1')).join('\n'),
      'what another reader gets': seen.text + JSON.stringify(seen.headers),
    };
    for (const [place, text] of Object.entries(places)) {
      expect(text.length, place).toBeGreaterThan(10);
      expect(linesWith(FORBIDDEN, text), place).toEqual([]);
    }
    expect(keys.length).toBeGreaterThan(1);
    expect(errors.length).toBeGreaterThan(100);
    for (const error of errors) {
      const [asked = '', said = ''] = error.split(/: (?=\d)/);
      // An error may quote only the path or the index of its request.
      const isQuoted = asked.includes('/sessions/') || asked.includes('index=');
      if (!isQuoted) expect(linesWith(FORBIDDEN, said), asked).toEqual([]);
    }
  });

  test('causes no-store on an authorised read, and is not shown to the next reader', async () => {
    demo.put(PUBLIC, [textValue(1, 'URL', 'https://example.org/public'), privateValue]);
    proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    const path = `/api/handles/${PUBLIC}?publicOnly=false`;
    const answer = await ask(proxy.url, path, { headers: WRITE_HEADERS });
    expect(answer.headers['cache-control']).toContain('no-store');
    expect((await ask(proxy.url, `/api/handles/${PUBLIC}`)).text).not.toContain(PRIVATE);
  });
});
