// How prepared answers are sent: what they say is compared in test/property/hot-path.test.ts, here what it takes.
import { once } from 'node:events';
import { Agent, type IncomingMessage, ServerResponse, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createWire, linesOf } from '../../src/http/wire.js';

test('Node writes one head a second, and none of the others of a kept connection', async () => {
  let now = 5000;
  const send = createWire();
  const answer = { status: 200, lines: linesOf(['Content-Length', '5']), body: 'hello' };
  const server = createServer((_req, res) => {
    send(res, answer, now);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => {
    agent.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const ask = async (): Promise<string> => {
    const [got] = (await once(request({ port, agent }).end(), 'response')) as [IncomingMessage];
    return `${got.headers.connection} ${await text(got)}`;
  };
  const written = vi.spyOn(ServerResponse.prototype, 'writeHead');
  const answers = [await ask(), await ask(), await ask()];
  expect(written).toHaveBeenCalledTimes(1);
  now += 1000;
  answers.push(await ask(), await ask());
  expect(written).toHaveBeenCalledTimes(2);
  expect(new Set(answers)).toEqual(new Set(['keep-alive hello']));
});

test.each([
  ['a header', ['Location', 'https://example.org/\r\nSet-Cookie: a=b']],
  ['a name', ['Loca\r\ntion', 'x']],
])('%s that would be two is refused', (_what, headers) => {
  expect(() => linesOf(headers)).toThrow(TypeError);
});
