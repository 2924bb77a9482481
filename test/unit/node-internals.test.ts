// The proxy relies on this undocumented behaviour of Node and http-proxy.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type RequestListener, type Server, createServer } from 'node:http';
import { type AddressInfo, type Socket, Server as NetServer } from 'node:net';
import express from 'express';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createForwardRequest } from '../../src/upstream/forwarding/forward-request.js';
import { sessionsOf } from '../../src/upstream/sessions.js';
import { currentResponse, trackConnections } from '../../src/server/connections.js';
import { leftOfWrite } from '../../src/server/unsent.js';
import { exchange, openSocket } from '../support/raw-socket.js';

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

async function listen(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe('internals of Node and http-proxy', () => {
  test('attach only the first of the pipelined responses to the socket until it is sent', async () => {
    const pending: { socket: Socket; res: Parameters<RequestListener>[1] }[] = [];
    const { url } = await listen(({ socket }, res) => pending.push({ socket, res }));
    const answered = exchange(url, GET + GET, { answers: 2 });
    await expect.poll(() => pending.length).toBe(2);
    const [first, second] = pending as [(typeof pending)[0], (typeof pending)[0]];
    expect(currentResponse(first.socket)).toBe(first.res);
    expect(second.res.socket).toBeNull();
    first.res.end();
    await expect.poll(() => currentResponse(first.socket)).toBe(second.res);
    second.res.end();
    await answered;
    expect(currentResponse(first.socket)).toBeUndefined();
  });

  test('leave idle connections open when net.Server.prototype.close closes an HTTP listener', async () => {
    const { server, url } = await listen((_req, res) => res.end('answered'));
    const open = trackConnections(server);
    const idle = await openSocket(url);
    idle.on('error', () => undefined);
    idle.write(GET);
    await once(idle, 'data');
    let isClosed = false;
    NetServer.prototype.close.call(server, () => (isClosed = true));
    await expect(openSocket(url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    idle.write(GET);
    const [data] = (await once(idle, 'data')) as [Buffer];
    expect(data.toString()).toContain('answered');
    expect([isClosed, open.size]).toEqual([false, 1]);
    idle.destroy();
    await expect.poll(() => isClosed).toBe(true);
  });

  test('send only the given target, headers and body through http-proxy', async () => {
    const received: { target: string; headers: IncomingHttpHeaders; body: string }[] = [];
    const { url: server } = await listen((req, res) => {
      const chunks: Buffer[] = [];
      req.on('data', (chunk: Buffer) => chunks.push(chunk));
      req.on('end', () => {
        received.push({
          target: req.url ?? '',
          headers: req.headers,
          body: Buffer.concat(chunks).toString(),
        });
        res.end('done');
      });
    });
    const agent = new Agent();
    const sessions = sessionsOf(server, server);
    const upstream = { url: server, readOnly: false, writeTimeoutMs: 10_000 };
    const forward = createForwardRequest(upstream, { pseudonym: 'proxy', writeAgent: agent, sessions });
    const peer = { address: '192.0.2.1', isTrusted: false };
    const app = express();
    app.use(async (req, res) => {
      // The client is still sending its body.
      const response = await forward(req, res, {
        target: '/a//b\\c/../d?e',
        body: Buffer.from('ours'),
        peer,
        requestId: 'ours',
      });
      response.pipe(res);
    });
    const { url } = await listen(app);
    const head = 'PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nConnection: X-Gone\r\nX-Gone: 1\r\n\r\n';
    const { answers } = await exchange(url, `${head}the`, { answers: 1 });
    expect(answers.map(({ status, body }) => [status, body])).toEqual([[200, 'done']]);
    expect(received).toMatchObject([
      { target: '/a//b\\c/../d?e', body: 'ours', headers: { 'content-length': '4', via: '1.1 proxy' } },
    ]);
    expect(received[0]?.headers).not.toHaveProperty('x-gone');
  });

  test('emit prefinish from end() and show write progress as a shrinking writeQueueSize', async () => {
    const LENGTH = 32 * 1024 * 1024;
    let ended: { length: number; left: number | undefined; socket: Socket } | undefined;
    const { url } = await listen(({ socket }, res) => {
      res.on('prefinish', () => {
        ended = { length: socket.writableLength, left: leftOfWrite(socket), socket };
      });
      res.end('x'.repeat(LENGTH), 'latin1');
      expect(ended?.length).toBeGreaterThanOrEqual(LENGTH);
    });
    const client = await openSocket(url);
    client.pause();
    client.write(GET);
    await expect.poll(() => ended).toBeDefined();
    const { left = 0, socket } = ended!;
    expect(left).toBeGreaterThan(0);
    const seen: number[] = [];
    client.on('data', () => seen.push(leftOfWrite(socket) ?? 0)).resume();
    await expect.poll(() => seen.some((now) => now > 0 && now < left)).toBe(true);
    client.destroy();
  });
});
