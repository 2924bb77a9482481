// The admin listener bounds its connections, and always answers probes.
import '../support/real-sockets.js';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Context } from '../../src/context.js';
import { createMetrics } from '../../src/observe/metrics.js';
import { MAX_ADMIN_CONNECTIONS } from '../../src/server/connections.js';
import { createAdminServer } from '../../src/server/http-server.js';
import { createAdminAlone } from '../support/admin.js';
import { ask } from '../support/ask.js';
import { partial } from '../support/partial.js';
import { openSocket } from '../support/raw-socket.js';

const TOKEN = 'an-admin-token-of-a-test';
const GET = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
/** A call whose body is awaited, so that its response is pending. */
const CALL = `POST /purge HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n`;

async function startAdmin() {
  const metrics = createMetrics();
  const server = createAdminServer(
    createAdminAlone({ metrics, token: TOKEN }),
    partial<Context>({ metrics }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  let [open, most] = [0, 0];
  server.on('connection', (socket) => {
    most = Math.max(most, ++open);
    socket.once('close', () => open--);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    figures: () => ({ open, most }),
  };
}

describe('connections of the admin listener', () => {
  test.each([
    ['send nothing', ''],
    ['send part of a request', 'GET /metrics HTTP/1.1\r\n'],
    ['are idle', GET],
    ['wait for a response', CALL],
  ])('are bounded, and probes are answered, while 300 clients %s', async (_what, bytes) => {
    const { url, figures } = await startAdmin();
    for (let count = 0; count < 300; count++) {
      const socket = await openSocket(url);
      if (bytes !== '') socket.write(bytes);
      if (bytes.endsWith('\r\n\r\n')) await once(socket, 'data');
      if (count % 50 !== 49) continue;
      expect((await ask(url, '/healthz')).status).toBe(200);
      expect((await ask(url, '/readyz')).status).toBe(200);
    }
    await expect.poll(() => figures().open).toBeLessThanOrEqual(MAX_ADMIN_CONNECTIONS);
    // A closed connection counts until its event arrives.
    expect(figures().most).toBeLessThanOrEqual(MAX_ADMIN_CONNECTIONS + 8);
  });
});
