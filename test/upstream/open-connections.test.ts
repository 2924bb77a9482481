// An error of an open connection never proves that the server has not read the request. A closed sender opens no connection.
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createConnections, createSender } from '../../src/upstream/connections.js';
import { isBeforeRequest } from '../../src/upstream/failure.js';
import '../support/real-sockets.js';

const failure = (code: string): Error => Object.assign(new Error(code), { code });

test.each(['EHOSTUNREACH', 'ENETUNREACH'])('%s after a request has been sent', async (code) => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const { writeAgent, close } = createConnections({ url, connections: 1 });
  onTestFinished(close);
  const sent = request(url, { method: 'PUT', agent: writeAgent });
  sent.end('[]');
  await once(server, 'request');
  const failed = once(sent, 'error');
  sent.socket?.destroy(failure(code));
  const [error] = (await failed) as [Error];
  expect(error).toMatchObject({ code });
  expect(isBeforeRequest(error)).toBe(false);
  expect(isBeforeRequest(failure(code)), 'the same before the connection').toBe(true);
});

test('a request after the end of its sender is not sent, also as the first one', async () => {
  let asked = 0;
  const server = createServer((_, res) => {
    asked++;
    res.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const sender = createSender();
  await sender.close();
  await expect(sender.send(`http://127.0.0.1:${port}`, {}, 5000)).rejects.toThrow();
  expect(asked).toBe(0);
});
