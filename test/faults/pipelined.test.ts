// Pipelined requests: the proxy answers them in order, and reads only a few at a time.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberedBody } from '../support/demo-writes.js';
import { startProxy } from '../support/proxy.js';
import { exchange, openSocket } from '../support/raw-socket.js';

const demo = await startDemoServer();
const HIT = '/api/handles/21.T11998/page';
const MIB = 1024 * 1024;

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

function put(path: string, number: number): string {
  const body = numberedBody(number);
  const headers = { Host: 'x', ...WRITE_HEADERS, 'Content-Length': String(Buffer.byteLength(body)) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`PUT ${path} HTTP/1.1`, ...lines, '', body].join('\r\n');
}

describe('pipelined requests', () => {
  test('start after the previous response, so a GET after a PUT returns the written record', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const path = '/api/handles/21.T11998/in-turn';
    const bytes = [1, 2, 3].map((number) => put(path, number) + get(path)).join('');
    const { answers } = await exchange(proxy.url, bytes, { answers: 6 });
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 200, 200, 200, 200]);
    for (const [at, number] of [1, 2, 3].entries())
      expect(answers[2 * at + 1]?.body).toContain(`example.org/${number}"`);
  });

  test('are all answered when they arrive in one packet, both hits and misses', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const paths = Array.from({ length: 300 }, (_, at) =>
      at % 3 === 0 ? `/api/handles/21.T11998/new-${at}` : HIT,
    );
    const { answers } = await exchange(proxy.url, paths.map(get).join(''), { answers: 300 });
    expect(answers.map(({ status }) => status)).toEqual(paths.map((path) => (path === HIT ? 200 : 404)));
  });

  test('do not delay other clients', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    await proxy.ask(HIT);
    const socket = await openSocket(proxy.url);
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    const answered = (): number => received.split('HTTP/1.1 200').length - 1;
    // Express serves this page.
    socket.write(get('/21.T11998/page?noredirect').repeat(1000));
    await expect.poll(answered, { interval: 1 }).toBeGreaterThan(0);
    await ask(proxy.url, HIT);
    expect(answered()).toBeLessThan(500);
  });

  test('delay only the client that sent them, even by the hundred thousand', async () => {
    const proxy = await startProxy({
      UPSTREAM_URL: demo.url,
      UPSTREAM_STALE_AFTER: '1s',
      UPSTREAM_TIMEOUT: '2s',
    });
    await proxy.ask(HIT);
    demo.fail('hang');
    const before = process.memoryUsage().heapUsed;
    const socket = await openSocket(proxy.url);
    let hasTakenAll = false;
    const question = get('/api/handles/21.T11998/hanging').replace('Host', `X: ${'x'.repeat(200)}\r\nHost`);
    socket.write(question.repeat(100_000), () => (hasTakenAll = true));
    await expect.poll(() => demo.asked).toBeGreaterThan(1);
    for (let count = 0; count < 20; count++) expect((await proxy.ask(HIT)).status).toBe(200);
    demo.heal();
    expect((process.memoryUsage().heapUsed - before) / MIB).toBeLessThan(64);
    expect(hasTakenAll).toBe(false);
  });

  test('share a memory bound, beyond which only the excess connections are closed', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    await proxy.ask(HIT);
    demo.hold.holdReplies('GET');
    const packet = get('/api/handles/21.T11998/hanging').repeat(1000);
    const sockets = await Promise.all(Array.from({ length: 30 }, () => openSocket(proxy.url)));
    for (const socket of sockets) socket.write(packet);
    await expect.poll(() => sockets.filter(({ closed }) => closed).length).toBeGreaterThan(5);
    expect(sockets.filter(({ closed }) => closed).length).toBeLessThan(20);
    expect((await proxy.ask(HIT)).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    demo.hold.sendHeld('GET');
    // The server detects a closed connection when it sends the response.
    await expect.poll(() => proxy.connections()).toBe(0);
    const again = await exchange(proxy.url, get(HIT).repeat(1000), { answers: 1000 });
    expect(again.answers).toHaveLength(1000);
  });
});
