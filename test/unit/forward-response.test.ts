import { once } from 'node:events';
import { type IncomingMessage, createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { peekResponseBody } from '../../src/record/forward.js';

/** Returns a response that the server aborted after these bytes, once the client has noticed. */
async function brokenOff(bytes: string): Promise<IncomingMessage> {
  const server = createServer((_req, res) => {
    res.writeHead(201, { 'Content-Length': '200' });
    res.write(bytes, () => res.destroy());
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
  });
  await once(server, 'listening');
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  await new Promise((resolve) => response.once('close', resolve));
  return response;
}

describe('relayed response body', () => {
  test('fails immediately when the connection closed before the read', async () => {
    const response = await brokenOff('{"responseCode":1,');
    await expect(peekResponseBody(response, 1024)).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
    });
  });
});
