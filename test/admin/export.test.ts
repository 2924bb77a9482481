import '../support/real-sockets.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { snapshot } from '../../src/plugins/snapshot/plugin.js';
import { createTransfer } from '../../src/plugins/snapshot/restoring.js';
import { createAdminAlone } from '../support/admin.js';
import { ask } from '../support/ask.js';

const PATH = '/export?prefix=21.T1';

async function listen(exportRecords: () => AsyncGenerator<string, number>) {
  const onUnexpected = vi.fn();
  const adminHandlers = createTransfer({
    exportRecords,
    importLines: () => Promise.reject(new Error('unused')),
  });
  const app = createAdminAlone({ plugins: [snapshot], adminHandlers, onUnexpected });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, onUnexpected };
}

describe('export', () => {
  test('stops without reporting an error when its client disconnects', async () => {
    let isEnded = false;
    const { url, onUnexpected } = await listen(async function* () {
      try {
        for (;;) yield await Promise.resolve('x'.repeat(100_000));
      } finally {
        isEnded = true;
      }
    });
    const leaving = new AbortController();
    const { body } = await fetch(url + PATH, { signal: leaving.signal });
    await body?.getReader().read();
    leaving.abort();
    await expect.poll(() => isEnded).toBe(true);
    expect((await ask(url, '/healthz')).status).toBe(200);
    expect(onUnexpected).not.toHaveBeenCalled();
  });

  test('is aborted, and reports an error, when the records are unreadable', async () => {
    const failure = new Error('broken');
    const { url, onUnexpected } = await listen(async function* () {
      yield await Promise.resolve('x');
      throw failure;
    });
    await expect(ask(url, PATH)).rejects.toThrow();
    await expect.poll(() => onUnexpected.mock.calls).toEqual([[failure]]);
  });
});
