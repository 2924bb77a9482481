// A closing listener accepts and serves connections already completed by the kernel.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, connect } from 'node:net';
import timers from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createDrain } from '../../src/server/drain.js';

/** Runs `act` at the end of the next event-loop turn, before the drain continues. */
function atEndOfTurn(act: () => void): void {
  const { setImmediate: nextTurn } = timers;
  const turns = vi.spyOn(timers, 'setImmediate').mockImplementationOnce(async (value) => {
    await nextTurn();
    act();
    // Node connects in a separate tick.
    await new Promise<void>((resolve) => {
      process.nextTick(resolve);
    });
    return value;
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    turns.mockRestore();
    syncBuiltinESMExports();
  });
}

describe('listener drain', () => {
  test('serves a connection that arrives in the tick that closes the listener', async () => {
    const server = createServer((_req, res) => res.end('answered'));
    const drain = createDrain(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const received = new Promise<string>((resolve, reject) => {
      // This turn has accepted the existing connections, and the drain has not yet checked the queue.
      atEndOfTurn(() => {
        let text = '';
        connect(port, '127.0.0.1')
          .setEncoding('latin1')
          .on('data', (part: string) => (text += part))
          .on('end', () => {
            resolve(text);
          })
          .on('error', reject)
          .write('GET / HTTP/1.1\r\nHost: proxy\r\n\r\n');
      });
    });
    await Promise.all([drain(60_000), received]);
    expect(await received).toMatch(/^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n[^]*answered$/i);
  });
});
