// Client, operator and Handle server see the same request id.
import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import type { Question } from '../support/ask.js';
import { configFrom } from '../support/load-config.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, UPSTREAM_URL, mockUpstream } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const TRUSTED = { HTTP_TRUSTED_PROXIES: 'loopback' };
const GIVEN = '7f000001:c8a2_req+1/=@x.y-z';
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const FAILURE = { status: 0, body: '', error: 'ECONNREFUSED' };

type Line = Record<string, unknown>;

async function startLogged(env: Record<string, string> = {}) {
  const lines: Line[] = [];
  const write = (text: string): void => {
    for (const line of text.trimEnd().split('\n')) lines.push(JSON.parse(line) as Line);
  };
  const proxy = await startProxy(env, { logger: createLogger({ level: 'info', destination: { write } }) });
  /** Waits for `count` request log lines and returns their ids. */
  const logged = async (count: number): Promise<unknown[]> => {
    const ids = (): unknown[] =>
      lines.filter(({ msg }) => msg === 'request').map(({ requestId }) => requestId);
    await expect.poll(() => ids().length).toBe(count);
    return ids();
  };
  return { proxy, logged };
}

const from = (id: string | string[]): Question => ({ headers: { 'X-Request-Id': id } });

const INTERFACES = [PATH, `/${HANDLE}`, PATH.replace('/api/', '/api/v2/'), '/api/unknown'];

describe('request id of an error', () => {
  test.each(INTERFACES)('matches the log line for %s', async (path) => {
    mockUpstream(FAILURE);
    const { proxy, logged } = await startLogged();
    const { status, headers } = await proxy.ask(path);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(headers['x-request-id']).toMatch(UUID);
    expect(await logged(1)).toEqual([headers['x-request-id']]);
  });

  test.each(INTERFACES)('is accepted from a trusted proxy for %s', async (path) => {
    mockUpstream(FAILURE);
    const { proxy, logged } = await startLogged(TRUSTED);
    expect((await proxy.ask(path, from(GIVEN))).headers['x-request-id']).toBe(GIVEN);
    expect(await logged(1)).toEqual([GIVEN]);
  });

  test('is exposed to cross-origin scripts', async () => {
    mockUpstream(FAILURE);
    const { proxy } = await startLogged();
    const { headers } = await proxy.ask(PATH, { headers: { Origin: 'https://app.example' } });
    expect(headers['access-control-expose-headers']).toContain('X-Request-Id');
  });
});

describe('request id', () => {
  test.each<[what: string, id: string | string[]]>([
    ['is empty', ''],
    ['is longer than 128 characters', 'a'.repeat(129)],
    ['has JSON syntax characters', 'a","level":"error'],
    ['has HTML syntax characters', '<b>'],
    ['has spaces', 'a b'],
    ['is sent twice', ['a', 'b']],
  ])('is replaced when it %s', async (_what, id) => {
    mockUpstream(FAILURE);
    const { proxy } = await startLogged(TRUSTED);
    for (const path of [PATH, `/${HANDLE}`]) {
      expect((await proxy.ask(path, from(id))).headers['x-request-id']).toMatch(UUID);
    }
  });

  test('is replaced when the client is not trusted', async () => {
    mockUpstream(FAILURE);
    const { proxy, logged } = await startLogged({ HTTP_TRUSTED_PROXIES: '192.0.2.1' });
    const { headers } = await proxy.ask(PATH, from(GIVEN));
    expect(headers['x-request-id']).toMatch(UUID);
    expect(await logged(1)).toEqual([headers['x-request-id']]);
  });

  test('is accepted from a proxy that became trusted through a reload', async () => {
    mockUpstream(FAILURE);
    const { proxy } = await startLogged();
    proxy.app.reload(configFrom({ env: { UPSTREAM_URL, LOG_LEVEL: 'silent', ...TRUSTED } }));
    expect((await proxy.ask(PATH, from(GIVEN))).headers['x-request-id']).toBe(GIVEN);
  });

  test('appears in the log line of a hit when the client sent it', async () => {
    mockUpstream();
    const { proxy, logged } = await startLogged({ ...TRUSTED, LOG_REQUESTS: 'all' });
    await proxy.ask(PATH);
    for (const id of ['one', 'two']) {
      const { headers } = await proxy.ask(PATH, from(id));
      expect(headers['cache-status']).toContain('hit');
      expect(headers).not.toHaveProperty('x-request-id');
    }
    await proxy.ask(PATH);
    expect(await logged(4)).toEqual([expect.stringMatching(UUID), 'one', 'two', undefined]);
  });

  test('is replaced in the forwarded request when the client is not trusted', async () => {
    const sent = mockWrites();
    const { proxy, logged } = await startLogged();
    await proxy.ask(PATH, { method: 'PUT', body: '[]', ...from(GIVEN) });
    expect(await logged(1)).toEqual([sent[0]?.headers['x-request-id']]);
    expect(sent[0]?.headers['x-request-id']).toMatch(UUID);
  });
});
