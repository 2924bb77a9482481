// A proxy whose upstream is itself answers with an error instead of looping (RFC 9110 §7.6.3).
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type Proxy, startProxy } from '../support/proxy.js';
import { PATH } from '../support/upstream.js';

/** A proxy before a server that hands every request to that very proxy. */
async function startLoop(): Promise<{ proxy: Proxy; passes: () => number }> {
  let listener: RequestListener = () => undefined;
  let passes = 0;
  const server = createServer((req, res) => {
    passes++;
    listener(req, res);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const proxy = await startProxy({ UPSTREAM_URL: `http://127.0.0.1:${port}`, DELETION_HANDLES: 'true' });
  listener = proxy.app.handler;
  return { proxy, passes: () => passes };
}

test.each([
  ['GET', PATH, {}],
  ['GET', PATH, { Authorization: 'Basic eDp5' }],
  ['GET', '/api/site', {}],
  ['PUT', PATH, {}],
  ['DELETE', PATH, {}],
  ['POST', PATH, {}],
])('%s %s with %o is 508 after one round', async (method, target, headers) => {
  const { proxy, passes } = await startLoop();
  const answer = await proxy.ask(target, { method, headers: headers });
  expect(answer.status).toBe(508);
  expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 2 });
  expect(passes()).toBe(1);
});

test('two proxies in a row are no loop', async () => {
  const inner = await startProxy({ UPSTREAM_URL: 'http://127.0.0.1:9' });
  const outer = await startProxy({ UPSTREAM_URL: inner.url });
  expect((await outer.ask(PATH, { method: 'PUT', body: '[]' })).status).toBe(502);
});
