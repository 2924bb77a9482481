// Two workers on one port: connections that came to one while the other stood still move to both.
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { connectionsOfEach } from '../bench/proc.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { workersOf } from '../support/workers.js';

const CONNECTIONS = 16;
/** Several at once keep the worker busier than this client. */
const BATCH = 20;
const REQUESTS = 'GET /api/handles/21.T11998/page HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(BATCH);

const demo = await startDemoServer();

/** Sends one batch after the other, over a new connection whenever one ends; the result ends it. */
function keepAsking(url: string): () => void {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let next = (): void => {
    socket.destroy();
  };
  let received = '';
  socket.on('connect', () => socket.write(REQUESTS));
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    if ((received.match(/HTTP\/1\.1 200/g) ?? []).length < BATCH) return;
    received = '';
    socket.write(REQUESTS);
  });
  // A connection that ends behind a response may be reset by requests that were on their way.
  socket.on('error', () => undefined);
  let isOver = false;
  socket.once('close', () => {
    if (!isOver) next = keepAsking(url);
  });
  return () => {
    isOver = true;
    next();
  };
}

test('a busy worker lets connections go to one that is free', async () => {
  const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_WORKERS: '2' });
  const [frozen = 0] = await workersOf(proxy);
  const port = Number(new URL(proxy.url).port);
  const counts = (): number[] => connectionsOfEach(proxy.pid, port).filter((count) => count > 0);
  process.kill(frozen, 'SIGSTOP');
  const clients = Array.from({ length: CONNECTIONS }, () => keepAsking(proxy.url));
  onTestFinished(() => {
    for (const end of clients) end();
  });
  await expect.poll(counts).toEqual([CONNECTIONS]);
  process.kill(frozen, 'SIGCONT');
  await expect.poll(counts).toHaveLength(2);
});
