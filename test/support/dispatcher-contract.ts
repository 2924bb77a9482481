// The contract between dispatchers and the upstream client.
import { once } from 'node:events';
import net from 'node:net';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Diagnosis } from '../../src/errors.js';
import type { ClosableDispatcher, ConnectionOptions } from '../../src/upstream/connections.js';
import { type UpstreamRequest, exchange } from '../../src/upstream/exchange.js';
import type { UpstreamResponse } from '../../src/upstream/response.js';
import { type Loopback, listenHttp, listenRaw, listenTls } from '../live/upstream-loopback.js';
import { type Certificate, createCertificate } from './certificate.js';

type CreateDispatcher = (options: ConnectionOptions) => ClosableDispatcher;
type Send = (request?: Partial<UpstreamRequest>, timeoutMs?: number) => Promise<UpstreamResponse>;

const MAX_BODY_BYTES = 1000;
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const failsWith = (code: string, cause: string) => ({
  code,
  diagnosis: expect.objectContaining({ cause: expect.stringContaining(cause) as string }) as Diagnosis,
});

export function dispatcherContract(name: string, createDispatcher: CreateDispatcher): void {
  function open({ url }: Pick<Loopback, 'url'>, options: Partial<ConnectionOptions> = {}): Send {
    const dispatcher = createDispatcher({ connections: 1, ...options });
    onTestFinished(() => dispatcher.destroy());
    const request = { origin: url, method: 'GET' as const, path: '/', headers: [] };
    return (changes, timeoutMs = 60_000) =>
      exchange(dispatcher, { ...request, ...changes }, { timeoutMs, maxBodyBytes: MAX_BODY_BYTES });
  }

  describe(`${name}: requests and responses`, () => {
    test('preserve status, headers and body of a response', async () => {
      const server = await listenHttp((_request, response) => {
        response.writeHead(404, { 'X-One': 'a', 'Set-Cookie': ['b=1', 'c=2'] }).end('ä');
      });
      const { status, headers, body } = await open(server)();
      expect({ status, body }).toEqual({ status: 404, body: 'ä' });
      expect(headers).toMatchObject({ 'x-one': 'a', 'set-cookie': ['b=1', 'c=2'] });
    });

    test('preserve path, headers and body of a request', async () => {
      let sent = '';
      const server = await listenHttp(({ url, rawHeaders, method = '' }, response) => {
        sent = `${method} ${url ?? ''} ${rawHeaders.join(' ')}`;
        response.end();
      });
      const headers = ['X-Case', 'Kept'];
      await open(server)({ method: 'PUT', path: '/a/../b%2F..%2Fc?d=%zz', headers, body: 'ä' });
      expect(sent).toMatch(/^PUT \/a\/\.\.\/b%2F\.\.%2Fc\?d=%zz /);
      expect(sent).toContain('X-Case Kept');
      expect(sent.toLowerCase()).toContain('content-length 2');
    });

    test('include no body in the response to HEAD', async () => {
      const server = await listenHttp((_request, response) => response.setHeader('Content-Length', 5).end());
      const { status, headers, body } = await open(server)({ method: 'HEAD' });
      expect([status, headers['content-length'], body]).toEqual([200, '5', '']);
    });

    test('are not ended by an interim response', async () => {
      const server = await listenRaw((socket) => socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${OK}`));
      expect(await open(server)()).toMatchObject({ status: 200, body: 'ok' });
    });
  });

  describe(`${name}: limits`, () => {
    test.each([
      ['before the headers', ''],
      ['in the middle of the body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok'],
    ])('close the connection of a request that times out %s', async (_when, bytes) => {
      const sockets = new Set<net.Socket>();
      const server = await listenRaw((socket) => {
        socket.write(sockets.has(socket) ? bytes : OK);
        sockets.add(socket);
      });
      const send = open(server);
      // Opens the connection first, so that the timeout expires while the server processes the request.
      await send();
      const [socket] = sockets as unknown as [net.Socket];
      const closed = new Promise((resolve) => socket.once('close', resolve));
      await expect(send({}, 50)).rejects.toMatchObject(failsWith('UPSTREAM_TIMEOUT', '50 ms'));
      await closed;
    });

    test('abort a response whose body is over the limit and close its connection', async () => {
      let closed: Promise<unknown> | undefined;
      const server = await listenRaw((socket) => {
        closed = new Promise((resolve) => socket.once('close', resolve));
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n${' '.repeat(1001)}`);
      });
      await expect(open(server)()).rejects.toMatchObject(
        failsWith('UPSTREAM_INVALID_RESPONSE', 'more than 1000'),
      );
      await closed;
    });
  });

  describe(`${name}: connections`, () => {
    test('are reused', async () => {
      const server = await listenHttp((_request, response) => response.end('ok'));
      const send = open(server);
      for (let time = 0; time < 3; time++) expect((await send()).body).toBe('ok');
      expect(server.connections()).toBe(1);
    });

    test('are replaced to retry a GET when the server has dropped the idle connection', async () => {
      const used = new Set<net.Socket>();
      const server = await listenRaw((socket) => {
        if (used.has(socket)) socket.resetAndDestroy();
        else socket.write(OK);
        used.add(socket);
      });
      const send = open(server);
      for (let time = 0; time < 2; time++) expect((await send()).body).toBe('ok');
      expect(server.connections()).toBe(2);
    });

    test.each([
      ['GET', '2 resets', 2],
      ['PUT', '1 reset', 1],
    ] as const)('are opened for a %s until it fails after %s', async (method, _resets, times) => {
      const server = await listenRaw((socket) => socket.resetAndDestroy());
      await expect(open(server)({ method })).rejects.toMatchObject({ code: 'UPSTREAM_UNREACHABLE' });
      expect(server.connections()).toBe(times);
    });

    test('are reported as UPSTREAM_UNREACHABLE when refused', async () => {
      const server = net.createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as net.AddressInfo;
      server.close();
      await once(server, 'close');
      const send = open({ url: `http://127.0.0.1:${port}` });
      await expect(send()).rejects.toMatchObject(failsWith('UPSTREAM_UNREACHABLE', 'ECONNREFUSED'));
    });
  });

  describe(`${name}: TLS`, () => {
    let certificate: Certificate;
    beforeAll(async () => {
      certificate = await createCertificate();
    });

    test('accepts a certificate by its authority or pinned fingerprint', async () => {
      const server = await listenTls(certificate);
      expect((await open(server, { ca: certificate.cert })()).status).toBe(404);
      expect((await open(server, { fingerprint: certificate.fingerprint })()).status).toBe(404);
    });

    test.each([
      ['an unknown certificate', {}, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
      ['a different fingerprint', { fingerprint: 'ab'.repeat(32) }, 'ERR_TLS_PIN_MISMATCH'],
    ])('rejects %s before sending anything', async (_what, trust, code) => {
      const server = await listenTls(certificate);
      await expect(open(server, trust)()).rejects.toMatchObject(failsWith('UPSTREAM_UNREACHABLE', code));
      expect(server.received()).toBe('');
    });
  });
}
