// A handle list: it is streamed, not buffered.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startProxy } from '../support/proxy.js';

const LIST = '/api/handles?prefix=21.T11998';

describe('streamed handle list', () => {
  test('reaches the client before the upstream has sent the end', async () => {
    let answer: ServerResponse | undefined;
    const upstream = createServer((_req, res) => {
      answer = res;
      res.write('{"handles":["21.T11998/FIRST",');
    }).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    onTestFinished(() => {
      upstream.closeAllConnections();
      upstream.close();
    });
    const { port } = upstream.address() as AddressInfo;
    const proxy = await startProxy({ UPSTREAM_URL: `http://127.0.0.1:${port}` });
    const [list] = (await once(get(`${proxy.url}${LIST}`), 'response')) as [IncomingMessage];
    const [beginning] = (await once(list, 'data')) as [Buffer];
    expect(beginning.toString()).toContain('FIRST');
    answer?.end('"21.T11998/LAST"]}');
    const [end] = (await once(list, 'data')) as [Buffer];
    expect(end.toString()).toContain('LAST');
  });
});
