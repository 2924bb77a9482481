// Findings of fuzz runs, one test each.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';
import { sendAndReceive } from './requests.js';
import { readWellFormed } from './well-formed.js';

const demo = await startDemoServer();
const inOnePiece = (): number => 0.9999;
const HOST = 'Host: proxy.example\r\n';
const EXPECT = 'Expect: 100-continue\r\n';
const COLD = `GET /api/handles/21.T11998/page HTTP/1.1\r\n${HOST}\r\n`;

describe('Expect: 100-continue in a pipeline (fuzz findings)', () => {
  test('causes no 100 Continue between the head and body of a response (seed 4037)', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    // Caches the record, so that its response is ready while the preceding response is pending.
    await proxy.ask('/api/handles/21.T11998/demo');
    const expecting = `GET /api/handles/21.T11998/demo HTTP/1.1\r\n${HOST}${EXPECT}Connection: close\r\n\r\n`;
    const received = await sendAndReceive(proxy.url, Buffer.from(COLD + expecting), inOnePiece);
    const { statuses, rest } = readWellFormed(received);
    expect(statuses.filter((status) => status !== 100)).toEqual([200, 200]);
    expect(rest).toBe('');
  });

  test('is answered with 100 Continue only after the response to the preceding request', async () => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    const socket = await openSocket(url);
    let received = '';
    socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')));
    const head = `PUT /api/handles/21.T11998/page HTTP/1.1\r\n${HOST}${EXPECT}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n`;
    socket.write(COLD + head);
    await expect.poll(() => received).toMatch(/^HTTP\/1\.1 200 [^]*HTTP\/1\.1 100 Continue\r\n\r\n$/);
    socket.write('[]');
    await expect.poll(() => received).toMatch(/100 Continue\r\n\r\nHTTP\/1\.1 40[13] /);
  });
});
