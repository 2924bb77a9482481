// Hop-by-hop headers are removed in both directions; Via and X-Forwarded-* are added (RFC 9110 §7.6).
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/app/config.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';
import { PATH, UPSTREAM_URL, mockUpstream } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const CONNECTION_HEADERS = {
  Connection: 'close, X-Mine',
  'X-Mine': 'for this connection',
  'Keep-Alive': 'timeout=5',
  'Proxy-Connection': 'keep-alive',
  'Proxy-Authorization': 'Basic eDp5',
  TE: 'trailers',
  Trailer: 'Digest',
  Upgrade: 'h2c',
};

describe('forwarded headers', () => {
  test('exclude hop-by-hop headers in a request', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    await proxy.ask(PATH, { method: 'PUT', headers: { ...CONNECTION_HEADERS, 'X-Kept': 'yes' }, body: '[]' });
    const { headers } = sent[0]!;
    for (const name of [
      'x-mine',
      'keep-alive',
      'proxy-connection',
      'proxy-authorization',
      'te',
      'trailer',
      'upgrade',
    ]) {
      expect(headers).not.toHaveProperty(name);
    }
    expect(headers['connection']).not.toContain('X-Mine');
    expect(headers['x-kept']).toBe('yes');
  });

  test('exclude hop-by-hop headers in a response', async () => {
    mockWrites({
      status: 200,
      rawHeaders: [
        'Connection',
        'X-Theirs',
        'X-Theirs',
        '1',
        'Keep-Alive',
        'timeout=9',
        'Proxy-Authenticate',
        'Basic',
        'X-Kept',
        'yes',
      ],
    });
    const proxy = await startProxy();
    const { headers } = await proxy.ask(PATH, { method: 'PUT', body: '[]' });
    expect(headers).not.toHaveProperty('x-theirs');
    expect(headers).not.toHaveProperty('proxy-authenticate');
    expect(headers['keep-alive']).not.toBe('timeout=9');
    expect(headers['x-kept']).toBe('yes');
  });

  test('include required end-to-end headers, even when Connection names them', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    const headers = { Connection: 'Content-Type, Content-Length', 'Content-Type': 'application/json' };
    await proxy.ask(PATH, { method: 'PUT', headers, body: '[1]' });
    expect(sent[0]?.body).toBe('[1]');
  });

  test('include Via, with the proxy appended', async () => {
    const sent = mockWrites();
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH, { method: 'PUT' });
    await proxy.ask(PATH, { method: 'PUT', headers: { Via: '1.0 first, 1.1 second' } });
    const [plain, after] = sent.map(({ headers }) => headers['via']);
    expect(plain).toMatch(/^1\.1 handle-resolver-proxy-[0-9a-f]{8}$/);
    expect(after).toBe(`1.0 first, 1.1 second, ${plain!}`);
    expect(upstream.asked).toBe(0);
  });

  const CLAIMS = {
    'X-Forwarded-For': '192.0.2.7',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'resolver.example',
    'X-Forwarded-Port': '443',
    'X-Forwarded-Prefix': '/pid',
    X_Forwarded_For: '192.0.2.8',
    Forwarded: 'for=192.0.2.7',
    'X-Real-IP': '192.0.2.7',
  };
  const OURS = /^(::ffff:)?127\.0\.0\.1$/;

  test('replace the X-Forwarded-* headers from an untrusted client', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    const { host, port } = new URL(proxy.url);
    await proxy.ask(PATH, { method: 'PUT' });
    await proxy.ask(PATH, { method: 'PUT', headers: CLAIMS });
    for (const { headers } of sent) {
      expect(headers).toMatchObject({
        'x-forwarded-for': expect.stringMatching(OURS) as string,
        'x-forwarded-proto': 'http',
        'x-forwarded-host': host,
        'x-forwarded-port': port,
      });
      for (const name of ['x-forwarded-prefix', 'x_forwarded_for', 'forwarded', 'x-real-ip']) {
        expect(headers).not.toHaveProperty(name);
      }
    }
  });

  test('include no X-Forwarded-Host for a client that sends no Host', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    const head = `PUT ${PATH} HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n`;
    const { answers } = await exchange(proxy.url, `${head}[]`);
    expect(answers.map(({ status }) => status)).toEqual([200]);
    expect(sent[0]?.headers).not.toHaveProperty('x-forwarded-host');
  });

  test('extend the X-Forwarded-* headers from a trusted proxy', async () => {
    const sent = mockWrites();
    const proxy = await startProxy({ HTTP_TRUSTED_PROXIES: 'loopback' });
    await proxy.ask(PATH, { method: 'PUT', headers: CLAIMS });
    expect(sent[0]?.headers).toMatchObject({
      'x-forwarded-for': expect.stringMatching(/^192\.0\.2\.7, (::ffff:)?127\.0\.0\.1$/) as string,
      'x-forwarded-proto': 'https, http',
      'x-forwarded-host': 'resolver.example',
      'x-forwarded-prefix': '/pid',
      forwarded: expect.stringMatching(/^for=192\.0\.2\.7, for=/) as string,
      'x-real-ip': '192.0.2.7',
    });
  });

  test('depend on the trusted proxies as of the last reload', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    const config = (proxies: string | null) =>
      loadConfig({
        env: {
          UPSTREAM_URL,
          LOG_LEVEL: 'silent',
          ...(proxies !== null && { HTTP_TRUSTED_PROXIES: proxies }),
        },
        readFile: () => '',
      });
    for (const proxies of ['127.0.0.1', null]) {
      proxy.app.reload(config(proxies));
      await proxy.ask(PATH, { method: 'PUT', headers: CLAIMS });
    }
    expect(sent.map(({ headers }) => headers['x-real-ip'])).toEqual(['192.0.2.7', undefined]);
  });

  test.each(['X-HTTP-Method-Override', 'X_HTTP_Method_Override', 'X-Original-URL', 'X-Rewrite-URL'])(
    'exclude %s, which some gateways use to alter a request',
    async (name) => {
      const sent = mockWrites();
      const proxy = await startProxy({ HTTP_TRUSTED_PROXIES: 'loopback' });
      await proxy.ask('/api/sessions', { method: 'POST', headers: { [name]: 'DELETE' } });
      expect(sent[0]?.headers).not.toHaveProperty(name.toLowerCase());
    },
  );

  test('do not prevent the relay of an upstream response with Connection: close', async () => {
    mockWrites({ ...jsonAnswer(200, { responseCode: 1 }), rawHeaders: ['Connection', 'close'] });
    const proxy = await startProxy();
    expect((await proxy.ask(PATH, { method: 'PUT', body: '[]' })).status).toBe(200);
  });
});
