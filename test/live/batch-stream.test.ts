// Batch streaming: elements are sent while others load, at the client's reading speed.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type IncomingMessage, type RequestListener, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGunzip } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type BatchElement, handleOfTarget, numbered } from '../support/batch.js';
import { gate } from '../support/gate.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { exchange, openSocket } from '../support/raw-socket.js';
import { urlValue } from '../support/upstream.js';

interface Upstream {
  url: string;
  /** Requested handles in order. */
  asked: string[];
}

/** Starts a Handle server whose responses wait for `ready` and contain a record of `bytes` bytes. */
async function startUpstream(ready: (handle: string) => Promise<void>, bytes = 10): Promise<Upstream> {
  const asked: string[] = [];
  const listener: RequestListener = (req, res) => {
    const handle = handleOfTarget(req.url ?? '');
    asked.push(handle);
    const values = [urlValue('x'.repeat(bytes))];
    void ready(handle).then(() => res.end(JSON.stringify({ responseCode: 1, handle, values })));
  };
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** Sends a batch and returns the response without reading its body. */
async function sendBatch(proxy: Proxy, handles: string[], headers: object = {}): Promise<IncomingMessage> {
  const sent = request(`${proxy.url}/api/resolve`, { method: 'POST', headers: { ...headers }, agent: false });
  sent.on('error', () => undefined);
  sent.end(JSON.stringify({ handles }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  return response;
}

async function readAll(response: IncomingMessage): Promise<BatchElement[]> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string;
  return JSON.parse(text) as BatchElement[];
}

describe('streamed batch', () => {
  test.each([{}, { 'Accept-Encoding': 'gzip' }])(
    'sends the first elements while a later one is loaded (%o)',
    async (headers) => {
      const held = gate();
      const upstream = await startUpstream((handle) =>
        handle.endsWith('/9') ? held.opened : Promise.resolve(),
      );
      const proxy = await startProxy({ UPSTREAM_URL: upstream.url });
      const response = await sendBatch(proxy, numbered(10), headers);
      const decoded =
        response.headers['content-encoding'] === 'gzip' ? response.pipe(createGunzip()) : response;
      let text = '';
      for await (const chunk of decoded.setEncoding('utf8')) {
        text += chunk as string;
        if (text.includes('"21.T1/8"')) held.open();
      }
      expect((JSON.parse(text) as BatchElement[]).map(({ handle }) => handle)).toEqual(numbered(10));
    },
  );

  test('starts no further loads when the client resets the connection', async () => {
    const held = gate();
    const upstream = await startUpstream(() => held.opened);
    const proxy = await startProxy({ UPSTREAM_URL: upstream.url, UPSTREAM_CONCURRENCY: '8' });
    const handles = numbered(100);
    const response = await sendBatch(proxy, handles);
    await expect.poll(() => upstream.asked.length).toBe(2);
    response.socket.resetAndDestroy();
    await expect.poll(() => proxy.connections()).toBe(0);
    held.open();
    // Loads in flight are cached, and no further loads start.
    for (const handle of handles.slice(0, 2)) {
      await expect
        .poll(async () => (await proxy.ask(`/api/handles/${handle}`)).headers['cache-status'])
        .toContain('hit');
    }
    expect(upstream.asked).toEqual(handles.slice(0, 2));
  });

  test('stops when the client closes its connection before reading the response', async () => {
    const held = gate();
    const upstream = await startUpstream(() => held.opened);
    const proxy = await startProxy({ UPSTREAM_URL: upstream.url, UPSTREAM_CONCURRENCY: '8' });
    const response = await sendBatch(proxy, numbered(1000));
    await expect.poll(() => upstream.asked.length).toBe(2);
    response.destroy();
    held.open();
    await expect.poll(() => proxy.connections()).toBe(0);
    expect(upstream.asked.length).toBeLessThan(1000);
  });

  test('leaves the upstream queue when its client disconnects', async () => {
    const held = gate();
    const upstream = await startUpstream(() => held.opened);
    const proxy = await startProxy({ UPSTREAM_URL: upstream.url, UPSTREAM_CONCURRENCY: '8' });
    const first = [
      await sendBatch(proxy, numbered(2, '21.T1')),
      await sendBatch(proxy, numbered(2, '21.T2')),
    ];
    await expect.poll(() => upstream.asked.length).toBe(4);
    const waiting = await sendBatch(proxy, numbered(50, '21.T3'));
    waiting.socket.resetAndDestroy();
    await expect.poll(() => proxy.connections()).toBe(2);
    held.open();
    for (const response of first) expect(await readAll(response)).toHaveLength(2);
    expect(await readAll(await sendBatch(proxy, numbered(2, '21.T4')))).toHaveLength(2);
    expect(upstream.asked.filter((handle) => handle.startsWith('21.T3/'))).toEqual([]);
  });

  test('pauses for a client that does not read, and completes when it reads', async () => {
    const upstream = await startUpstream(() => Promise.resolve(), 30_000);
    const proxy = await startProxy({ UPSTREAM_URL: upstream.url });
    const handles = numbered(1000, '21.T1');
    const response = await sendBatch(proxy, handles);
    const askedByBatch = (): number => upstream.asked.filter((handle) => handle.startsWith('21.T1/')).length;
    // Repeats until the batch sends no upstream request while 20 other requests are answered.
    for (let before = -1, other = 0; askedByBatch() !== before;) {
      before = askedByBatch();
      for (let count = 0; count < 20; count++) await proxy.ask(`/api/handles/21.T2/${other++}?index=7`);
    }
    expect(askedByBatch()).toBeLessThan(1000);
    const elements = await readAll(response);
    expect(elements.map(({ handle }) => handle)).toEqual(handles);
    expect(askedByBatch()).toBe(1000);
  });

  test('precedes the response to the next request on the same connection', async () => {
    const upstream = await startUpstream(() => Promise.resolve());
    const proxy = await startProxy({ UPSTREAM_URL: upstream.url });
    const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`;
    const bytes = get('/api/handles?handle=21.T1/a&handle=21.T1/b') + get('/api/handles/21.T1/a');
    const { answers } = await exchange(proxy.url, bytes, { answers: 2 });
    expect(JSON.parse(answers[0]?.body ?? '')).toHaveLength(2);
    expect(JSON.parse(answers[1]?.body ?? '')).toMatchObject({ handle: '21.T1/a' });
  });

  test('closes the connection of an HTTP/1.0 client after the array', async () => {
    const upstream = await startUpstream(() => Promise.resolve());
    const proxy = await startProxy({ UPSTREAM_URL: upstream.url });
    const socket = await openSocket(proxy.url);
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    socket.write('GET /api/handles?handle=21.T1/a HTTP/1.0\r\n\r\n');
    await once(socket, 'close');
    const [head = '', body = ''] = text.split('\r\n\r\n');
    expect(head).toContain('Connection: close');
    expect(JSON.parse(body)).toMatchObject([{ handle: '21.T1/a', status: 200 }]);
  });
});
