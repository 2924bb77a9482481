// HTTPS_PROXY, HTTP_PROXY and NO_PROXY: every connection to a host that is not loopback goes through the proxy.
import '../support/real-sockets.js';
import dns from 'node:dns';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { outgoingProxy } from '../../src/config/outgoing-proxy.js';
import { createConnector, createPools, createSender } from '../../src/upstream/connections.js';
import { exchange } from '../../src/upstream/exchange.js';
import { keysAt } from '../../src/upstream/failure.js';
import { pingQuestion, presentedCertificate, probeServer } from '../../src/upstream/probe.js';
import { createCertificate } from '../support/certificate.js';
import { newChangeFile, startWebhookReceiver } from '../support/changes.js';
import { startConnectProxy } from '../support/connect-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, putNumbered } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { freePort } from '../support/free-port.js';
import { startOtlpReceiver } from '../support/otlp-receiver.js';
import { startProxy } from '../support/proxy.js';
import { portOf, siteOf } from '../support/site-values.js';
import { openConnections } from '../live/upstream-loopback.js';

const certificate = await createCertificate({ name: 'handle.test' });
const secure = await startDemoServer({ tls: certificate });
const plain = await startDemoServer();
const PATH = '/api/handles/21.T11998/proxied';

/** Returns the host and port under which only the outgoing proxy finds a server on loopback. */
const placeOf = ({ url }: { url: string }, host = 'handle.test'): string => `${host}:${new URL(url).port}`;

afterEach(() => {
  vi.unstubAllEnvs();
});

describe('outgoing proxy', () => {
  test('carries reads and writes to an https server', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('HTTPS_PROXY', outgoing.url.replace('//', '//us%40er:pass%3Aword@'));
    const place = placeOf(secure);
    const env = { UPSTREAM_URL: `https://${place}` };
    const proxy = await startProxy(env, { ca: certificate.cert, createDispatcher: createPools });
    expect((await putNumbered(proxy.url, PATH, 1)).status).toBe(201);
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
    expect(outgoing.tunnels.length).toBeGreaterThan(1);
    expect(new Set(outgoing.tunnels)).toEqual(new Set([place]));
    const login = `Basic ${Buffer.from('us@er:pass:word').toString('base64')}`;
    expect(new Set(outgoing.logins)).toEqual(new Set([login]));
  });

  test('carries reads and writes to an http server, by HTTP_PROXY', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('http_proxy', outgoing.url);
    vi.stubEnv('HTTP_PROXY', 'http://127.0.0.1:1');
    const env = { UPSTREAM_URL: `http://${placeOf(plain)}` };
    const proxy = await startProxy(env, { createDispatcher: createPools });
    expect((await putNumbered(proxy.url, PATH, 1)).status).toBe(201);
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
    expect(new Set(outgoing.tunnels)).toEqual(new Set([placeOf(plain)]));
  });

  test('keeps a pinned certificate pinned', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('HTTPS_PROXY', outgoing.url);
    const url = `https://${placeOf(secure)}`;
    const { writeAgent, dispatcher } = openConnections({ url, connections: 1, fingerprint: 'AB'.repeat(32) });
    const request = { origin: url, method: 'GET' as const, path: '/', headers: [] };
    await expect(
      exchange(dispatcher, request, { timeoutMs: 60_000, maxBodyBytes: 1000 }),
    ).rejects.toMatchObject({ cause: { code: 'ERR_TLS_PIN_MISMATCH' } });
    const [error] = (await once(https.request(url, { agent: writeAgent }).end(), 'error')) as [Error];
    expect(error).toMatchObject({ code: 'ERR_TLS_PIN_MISMATCH' });
    expect(await presentedCertificate(url, { timeoutMs: 10_000 })).toMatchObject({
      fingerprint: certificate.fingerprint,
    });
  });

  test('is not used for loopback', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://192.0.2.1:3128');
    const proxy = await startProxy({ UPSTREAM_URL: plain.url });
    expect((await proxy.ask('/api/handles/21.T11998/page')).status).toBe(200);
  });

  test('carries changes to a webhook, and spans to a collector', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('HTTP_PROXY', outgoing.url);
    const [receiver, collector] = [await startWebhookReceiver(), await startOtlpReceiver()];
    const named = (url: string, host: string) => url.replace('127.0.0.1', host);
    const proxy = await startProxy({
      UPSTREAM_URL: plain.url,
      CHANGES_FILE: newChangeFile().path,
      CHANGES_WEBHOOK_URL: named(receiver.url, 'hook.test'),
      CHANGES_WEBHOOK_SECRET: Buffer.alloc(32, 7).toString('base64'),
      TRACING_ENDPOINT: named(collector.endpoint, 'collector.test'),
    });
    await proxy.ask('/api/handles/21.T11998/page');
    await expect.poll(() => receiver.deliveries.length).toBeGreaterThan(0);
    await expect.poll(() => collector.spans().length, { timeout: 60_000 }).toBeGreaterThan(0);
    const hosts = outgoing.tunnels.map((tunnel) => tunnel.split(':')[0]);
    expect(new Set(hosts)).toEqual(new Set(['hook.test', 'collector.test']));
  });

  test('carries requests to the reverse lookup service', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('HTTP_PROXY', outgoing.url);
    const service = http.createServer((_req, res) => res.end('["21.T11998/page"]')).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const { port } = service.address() as { port: number };
    const env = { UPSTREAM_URL: plain.url, REVERSE_LOOKUP_URL: `http://hrls.test:${port}` };
    const proxy = await startProxy(env);
    expect((await proxy.ask('/hrls/handles?URL=*')).text).toContain('21.T11998/page');
    expect(outgoing.tunnels).toEqual([`hrls.test:${port}`]);
    service.closeAllConnections();
    service.close();
  });

  test('carries reads of referred servers, whose private addresses stay rejected', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('HTTP_PROXY', outgoing.url);
    const far = await startDemoServer({
      prefixes: ['99.FAR'],
      seed: { '99.FAR/page': [textValue(1, 'URL', 'https://example.org/far')] },
    });
    const at = (address: string) => siteOf({ url: far.url.replace('127.0.0.1', address) });
    const root = await startDemoServer({
      prefixes: ['0.NA'],
      seed: { '0.NA/99.FAR': [at('9.9.9.9')], '0.NA/99.NEAR': [at('10.0.0.1')] },
    });
    const proxy = await startProxy({
      UPSTREAMS: JSON.stringify([{ prefixes: ['0.NA'], url: root.url, readOnly: true }]),
      UPSTREAM_FOLLOW_REFERRALS: 'true',
      ...fixed({ upstream: { referralPorts: [portOf(far)] } }),
    });
    expect((await proxy.ask('/api/handles/99.FAR/page')).text).toContain('https://example.org/far');
    expect((await proxy.ask('/api/handles/99.NEAR/page')).status).toBe(502);
    expect(outgoing.tunnels).toEqual([placeOf(far, '9.9.9.9')]);
  });

  test('gets the address that a lookup has checked, not the name', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('HTTP_PROXY', outgoing.url);
    const url = `http://${placeOf(plain)}`;
    const { writeAgent } = openConnections({
      ...{ url, connections: 1 },
      lookup: (_host, _options, found) => {
        found(null, '2001:db8::1', 6);
      },
    });
    const [response] = (await once(http.get(`${url}/hrls/ping`, { agent: writeAgent }), 'response')) as [
      http.IncomingMessage,
    ];
    expect(response.resume().statusCode).toBeLessThan(500);
    expect(outgoing.tunnels).toEqual([placeOf(plain, '[2001:db8::1]')]);
  });

  test('opens no tunnel when the lookup fails, and the request fails with its error', async () => {
    const outgoing = await startConnectProxy();
    vi.stubEnv('HTTP_PROXY', outgoing.url);
    const url = `http://${placeOf(plain)}`;
    const { writeAgent } = openConnections({
      ...{ url, connections: 1 },
      lookup: (_host, _options, found) => found(new Error('a private address'), '', 4),
    });
    const failed = once(http.get(`${url}/hrls/ping`, { agent: writeAgent }), 'error');
    expect(await failed).toMatchObject([{ message: 'a private address' }]);
    expect(outgoing.tunnels).toEqual([]);
  });
});

describe('failed outgoing proxy', () => {
  const probe = (url: string) => {
    const limits = { timeoutMs: 10_000, maxBodyBytes: 1000, staleAfterMs: 10_000 };
    const keys = keysAt({ key: 'upstream', url }, url);
    const question = pingQuestion(url);
    return probeServer(
      { url, question, keys, pseudonym: 'test', ...limits },
      {
        signal: new AbortController().signal,
        onAnswered: () => undefined,
      },
    );
  };

  test.each([
    [407, 'the outgoing proxy requires a login: 127.0.0.1:', 'give user and password in HTTPS_PROXY'],
    [403, 'the outgoing proxy opened no connection to the host: 127.0.0.1:', 'allow CONNECT'],
  ])('explains status %i, and shows no password', async (status, cause, remedy) => {
    const outgoing = await startConnectProxy(status);
    vi.stubEnv('HTTPS_PROXY', outgoing.url.replace('//', '//user:hunter2@'));
    const { failure } = await probe('https://handle.test:8000');
    expect(failure?.cause).toContain(cause);
    expect(failure?.cause).toContain(`HTTP ${status}`);
    expect(failure?.remedy).toContain(remedy);
    expect(JSON.stringify(failure)).not.toContain('hunter2');
  });

  /** Starts a server that sends the start of a response, and then a byte at a time. Returns its host and port. */
  async function startTrickle(start: string): Promise<string> {
    const server = createServer((socket) => {
      socket.write(start, 'latin1');
      const trickle = setInterval(() => socket.write('x'), 10);
      socket.once('close', () => {
        clearInterval(trickle);
      });
      socket.on('error', () => undefined);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const failureToConnect = (): Promise<unknown> =>
    new Promise((resolve) => {
      const to = { protocol: 'http:', hostname: 'handle.test', host: 'handle.test:80', port: '80' };
      createConnector(
        {},
        {},
        200,
      )(to, (...[error]) => {
        resolve(error);
      });
    });

  test('names no certificate of a server whose TLS handshake trickles in', async () => {
    // The header of a TLS record (RFC 8446, section 5.1) of 16,384 bytes.
    const url = `https://${await startTrickle('\x16\x03\x03\x40\x00')}`;
    expect(await presentedCertificate(url, { timeoutMs: 200 })).toBeUndefined();
  });

  test('is left when its response trickles in beyond the timeout', async () => {
    vi.stubEnv('HTTP_PROXY', `http://${await startTrickle('HTTP/1.1 200 OK\r\nX-Slow: ')}`);
    expect(await failureToConnect()).toMatchObject({
      message: expect.stringContaining('no response in time') as string,
    });
  });

  test('is told from a slow proxy when there is no connection to it in time', async () => {
    vi.stubEnv('HTTP_PROXY', 'http://proxy.test:3128');
    const lookup = vi.spyOn(dns, 'lookup').mockReturnValue();
    onTestFinished(() => {
      lookup.mockRestore();
    });
    expect(await failureToConnect()).toMatchObject({ message: 'proxy.test:3128, UND_ERR_CONNECT_TIMEOUT' });
  });

  test('is named, without its password, to a sender that gets no response in time', async () => {
    const outgoing = await startConnectProxy(0);
    vi.stubEnv('HTTP_PROXY', outgoing.url.replace('//', '//user:hunter2@'));
    const sender = createSender();
    onTestFinished(() => sender.close());
    const { host } = new URL(outgoing.url);
    await expect(sender.send('http://hook.test/', {}, 200)).rejects.toMatchObject({
      message: `no response in time through the outgoing proxy ${host}`,
    });
  });

  test('is named when it is down, and writes are known to be unsent', async () => {
    const port = await freePort();
    vi.stubEnv('HTTPS_PROXY', `http://user:hunter2@127.0.0.1:${port}`);
    const { failure } = await probe('https://handle.test:8000');
    expect(failure).toMatchObject({
      cause: `the outgoing proxy cannot be reached: 127.0.0.1:${port}, ECONNREFUSED (ERR_PROXY_UNREACHABLE)`,
      remedy: expect.stringContaining('NO_PROXY') as string,
    });
    const env = { UPSTREAM_URL: 'https://handle.test:8000' };
    const proxy = await startProxy(env, { createDispatcher: createPools });
    const written = await putNumbered(proxy.url, PATH, 1);
    expect(written.status).toBe(502);
    expect(written.text).toContain('UPSTREAM_CONNECT_FAILED');
    expect((await proxy.ask(PATH)).status).toBe(502);
  });
});

describe('choice of the outgoing proxy', () => {
  const HTTPS_PROXY = 'http://proxy.test:3128';
  const choose = (url: string, env: Record<string, string>): string | undefined =>
    outgoingProxy(new URL(url), env)?.href;

  test.each([
    ['https://handle.test', { HTTPS_PROXY }, true],
    ['https://handle.test', { https_proxy: '', HTTPS_PROXY }, false],
    ['https://handle.test', { HTTP_PROXY: HTTPS_PROXY }, false],
    ['https://localhost:8000', { HTTPS_PROXY }, false],
    ['https://127.9.9.9', { HTTPS_PROXY }, false],
    ['https://[::1]:8000', { HTTPS_PROXY }, false],
    ['https://handle.test', { HTTPS_PROXY, NO_PROXY: '*' }, false],
    ['https://handle.test', { HTTPS_PROXY, NO_PROXY: 'other.test, Handle.test' }, false],
    ['https://a.handle.test', { HTTPS_PROXY, NO_PROXY: 'handle.test' }, false],
    ['https://a.handle.test', { HTTPS_PROXY, no_proxy: '.handle.test' }, false],
    ['https://a.handle.test', { HTTPS_PROXY, NO_PROXY: '*.handle.test' }, false],
    ['https://myhandle.test', { HTTPS_PROXY, NO_PROXY: 'handle.test' }, true],
    ['https://handle.test', { HTTPS_PROXY, NO_PROXY: 'handle.test:443' }, false],
    ['https://handle.test:8000', { HTTPS_PROXY, NO_PROXY: 'handle.test:443' }, true],
    ['https://10.1.2.3:8000', { HTTPS_PROXY, NO_PROXY: '10.0.0.0/8' }, false],
    ['https://11.1.2.3:8000', { HTTPS_PROXY, NO_PROXY: '10.0.0.0/8,10.0.0.0/99' }, true],
    ['https://[2001:db8::1]', { HTTPS_PROXY, NO_PROXY: '2001:db8::/32' }, false],
    ['https://[2001:db8::1]', { HTTPS_PROXY, NO_PROXY: '2001:db8::1' }, false],
    ['https://[2001:db8::1]:8000', { HTTPS_PROXY, NO_PROXY: '[2001:db8::1]:8000' }, false],
  ])('for %s with %o uses it: %s', (url, env, isUsed) => {
    expect(choose(url, env)).toBe(isUsed ? `${HTTPS_PROXY}/` : undefined);
  });
});
