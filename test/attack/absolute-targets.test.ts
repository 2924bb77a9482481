// Absolute-form request targets (RFC 9112 §3.2.2): the proxy ignores scheme and host.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { exchange } from '../support/raw-socket.js';

const demo = await startDemoServer();

async function statusOf(requestLine: string): Promise<number | undefined> {
  const { url } = await startProxy({ UPSTREAM_URL: demo.url });
  const bytes = Buffer.from(`${requestLine} HTTP/1.1\r\nHost: proxy.example\r\nConnection: close\r\n\r\n`);
  const { answers } = await exchange(url, bytes);
  return answers[0]?.status;
}

describe('absolute-form request target', () => {
  test.each([
    ['GET http://proxy.example/21.T11998/page', 302],
    ['GET http://[/21.T11998/page', 302],
    ['GET https://xn--a/21.T11998/page', 302],
    ['GET ftp://[:1:/21.T11998/page', 302],
    ['GET http://[/api/handles/21.T11998/page', 200],
    ['PUT http://[/21.T11998/page', 405],
    ['GET http://proxy.example', 200],
    ['GET http://[', 200],
    ['GET http://proxy.example?hdl=21.T11998/page', 302],
  ])('is resolved without its scheme and host: %s returns %d', async (requestLine, status) => {
    expect(await statusOf(requestLine)).toBe(status);
  });

  test('is rejected when its host makes the request line too long', async () => {
    expect(await statusOf(`PUT http://${'a'.repeat(9000)}/21.T11998/page`)).toBe(414);
  });
});
