// Bans in caches in front, with a server in the place of Varnish; test/rollout/varnish runs a real one.
import '../support/real-sockets.js';
import { expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { startDemoServer } from '../support/demo.js';
import { numbered, putNumbered } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { startHostileServer } from '../support/hostile-server.js';
import { startProxy } from '../support/proxy.js';

const demo = await startDemoServer();

const confirm = (keys: string): string => `200 OK\r\nSurrogate-Banned: ${keys}`;

/** Starts a front that by default confirms each ban. Returns the banned keys. Node.js has no parser for BAN. */
async function startFront(answer = confirm) {
  const banned: string[] = [];
  const url = await startHostileServer((socket, text) => {
    const keys = /^surrogate-key: (.*)\r$/im.exec(text)?.[1] ?? '';
    banned.push(keys);
    socket.end(`HTTP/1.1 ${answer(keys)}\r\nConnection: close\r\n\r\n`);
  });
  return { url, banned };
}

test('each confirmed ban is repeated once, for a response that the front was storing when it was stopped', async () => {
  const front = await startFront();
  demo.put('21.T11998/front', numbered(0));
  const proxy = await startProxy({
    UPSTREAM_URL: demo.url,
    HTTP_SHARED_MAX_AGE: '1d',
    FRONTS_URLS: front.url,
    ...fixed({ fronts: { settleMs: 1, repeatMs: 200, timeoutMs: 60_000 } }),
  });
  await expect.poll(() => front.banned).toEqual(['.', '.']);
  expect((await putNumbered(proxy.url, '/api/handles/21.T11998/front', 1)).status).toBe(200);
  await expect.poll(() => front.banned.length).toBe(4);
  const [, , first, again] = front.banned;
  expect(again).toBe(first);
  expect(first).not.toBe('.');
});

test.each([
  ['does not name the banned keys', () => '200 OK'],
  ['names other keys', () => confirm('other')],
  ['is an error', (keys: string) => confirm(keys).replace('200 OK', '403 Forbidden')],
])('a ban is unconfirmed, and the write rejected, if the response %s', async (_what, answer) => {
  const front = await startFront(answer);
  demo.put('21.T11998/unbanned', numbered(0));
  const proxy = await startProxy({
    UPSTREAM_URL: demo.url,
    HTTP_SHARED_MAX_AGE: '1d',
    FRONTS_URLS: front.url,
    ...fixed({ fronts: { settleMs: 1, timeoutMs: 60_000 } }),
  });
  expect((await putNumbered(proxy.url, '/api/handles/21.T11998/unbanned', 1)).status).toBe(503);
});

test('a front that confirms every other ban is logged at most once a minute', async () => {
  let bans = 0;
  const front = await startFront((keys) => (bans++ % 2 === 0 ? '500 Broken' : confirm(keys)));
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  demo.put('21.T11998/flapping', numbered(0));
  await startProxy(
    {
      UPSTREAM_URL: demo.url,
      HTTP_SHARED_MAX_AGE: '1d',
      FRONTS_URLS: front.url,
      ...fixed({ fronts: { settleMs: 1, repeatMs: 1, retryMs: 1, timeoutMs: 60_000 } }),
    },
    { logger: createLogger({ level: 'info', destination }) },
  );
  await expect.poll(() => bans).toBeGreaterThan(8);
  const logged = lines.filter((line) => line.includes('cache in front'));
  expect(logged).toHaveLength(2);
});
