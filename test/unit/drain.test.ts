// The close of a listener: a connection that the kernel takes just before is accepted and answered.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { QUIET_MS, createDrain } from '../../src/server/drain.js';

test('a connection that comes in the turn that closes the listener is answered', async () => {
  const server = createServer((_req, res) => res.end('answered'));
  const drain = createDrain(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const received = new Promise<string>((resolve, reject) => {
    // After this turn has accepted what there was, and right before the drain goes on: its pause begins in the same turn.
    const connectLate = (): void => {
      let text = '';
      connect(port, '127.0.0.1')
        .setEncoding('latin1')
        .on('data', (part: string) => (text += part))
        .on('end', () => {
          resolve(text);
        })
        .on('error', reject)
        .write('GET / HTTP/1.1\r\nHost: proxy\r\n\r\n');
    };
    setTimeout(() => setImmediate(connectLate), QUIET_MS);
  });
  await Promise.all([drain(60_000), received]);
  expect(await received).toMatch(/^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*answered$/i);
});
