// The log line of a forwarded response that breaks off after its status was sent.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { get } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { ask } from '../support/ask.js';
import { startHostileServer, writeForEver } from '../support/hostile-server.js';
import { startProxy } from '../support/proxy.js';

/** Starts a proxy before the server at `url`; returns its log line of `/api/site`. */
async function startLogged(url: string) {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const logger = createLogger({ level: 'info', destination: { write } });
  const proxy = await startProxy({ UPSTREAM_URL: url }, { logger });
  const logged = async () => {
    const line = () => lines.find(({ path }) => path === '/api/site');
    await expect.poll(line).toBeDefined();
    return line();
  };
  return { url: proxy.url, logged };
}

test.each([
  ['which the Handle server cuts', 5, true],
  ['which is whole', 4, undefined],
])('the request log marks a forwarded response %s', async (_which, length, aborted) => {
  const url = await startHostileServer((socket) => {
    socket.end(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\npart`);
  });
  const proxy = await startLogged(url);
  await ask(proxy.url, '/api/site').catch(() => undefined);
  expect(await proxy.logged()).toMatchObject({ status: 200, result: 'bypass' });
  expect((await proxy.logged())?.['aborted']).toBe(aborted);
});

test('the request log does not mark a response whose client leaves', async () => {
  const url = await startHostileServer((socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\npart');
  });
  const proxy = await startLogged(url);
  const sent = get(`${proxy.url}/api/site`).on('error', () => undefined);
  await once(sent, 'response');
  sent.socket?.resetAndDestroy();
  expect(await proxy.logged()).not.toHaveProperty('aborted');
});

test('a record that is longer than upstream.maxRecordSize is read no further', async () => {
  const sockets: Socket[] = [];
  const url = await startHostileServer((socket) => {
    sockets.push(socket);
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n');
    writeForEver(socket, ' '.repeat(1024));
  });
  const proxy = await startProxy({ UPSTREAM_URL: url, UPSTREAM_MAX_RECORD_SIZE: '1KiB' });
  expect((await ask(proxy.url, '/api/handles/21.T1/LONG?publicOnly=false')).status).toBe(502);
  await expect.poll(() => sockets.map(({ destroyed }) => destroyed)).toEqual([true]);
});
