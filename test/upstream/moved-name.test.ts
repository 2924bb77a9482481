// A connection in use never looks up its host name again, so each is replaced after a while, without a failed request.
import '../support/real-sockets.js';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MAX_AGE_MS, createConnections } from '../../src/upstream/connections.js';

/** Starts a server that responds with its name; a request for `/held` waits for `release`. */
async function startServer(name: string, host: string, port: number) {
  const held: http.ServerResponse[] = [];
  const server = http.createServer((req, res) => {
    if (req.url === '/held') held.push(res);
    else res.end(name);
  });
  server.listen(port, host);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const release = (): void => {
    for (const res of held.splice(0)) res.end(name);
  };
  return { port: (server.address() as AddressInfo).port, held, release };
}

/** Starts two servers on one port, and connections to a name that leads to the first, until it `moves`. */
async function startMoving(most = 2) {
  const old = await startServer('old', '127.0.0.1', 0);
  await startServer('new', '127.0.0.2', old.port);
  let address = '127.0.0.1';
  let now = 0;
  const lookup: LookupFunction = (_host, options, found) => {
    if (options.all === true) found(null, [{ address, family: 4 }]);
    else found(null, address, 4);
  };
  const origin = `http://handle.test:${old.port}`;
  const connections = createConnections({ url: origin, connections: most, lookup, now: () => now });
  onTestFinished(() => connections.close());
  const read = (path = '/'): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = '';
      connections.dispatcher.dispatch(
        { origin, path, method: 'GET' },
        {
          onRequestStart: () => undefined,
          onResponseStart: () => undefined,
          onResponseData: (_controller, chunk) => {
            text += String(chunk);
          },
          onResponseEnd: () => {
            resolve(text);
          },
          onResponseError: (_controller, error) => {
            reject(error);
          },
        },
      );
    });
  const write = async (path = '/'): Promise<string> => {
    const request = http.request(`${origin}${path}`, { method: 'PUT', agent: connections.writeAgent }).end();
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    let text = '';
    for await (const chunk of response) text += String(chunk);
    return text;
  };
  return {
    old,
    connections,
    read,
    write,
    moves: () => {
      address = '127.0.0.2';
    },
    pass: (ms: number) => {
      now += ms;
    },
  };
}

describe('connections to a host name that moves', () => {
  test.each(['read', 'write'] as const)('are replaced under traffic (%s)', async (kind) => {
    const world = await startMoving(1);
    const seen: string[] = [await world[kind]()];
    world.moves();
    for (let at = 0; at < 5; at++) {
      seen.push(await world[kind]());
      world.pass(MAX_AGE_MS / 4);
    }
    seen.push(await world[kind](), await world[kind]());
    expect(seen[1]).toBe('old');
    expect(seen.at(-1)).toBe('new');
  });

  test.each(['read', 'write'] as const)('fail no request that is in flight meanwhile (%s)', async (kind) => {
    const world = await startMoving();
    const slow = world[kind]('/held');
    await expect.poll(() => world.old.held.length).toBe(1);
    world.moves();
    world.pass(MAX_AGE_MS + 1);
    expect(await world[kind]()).toBe('new');
    world.old.release();
    expect(await slow).toBe('old');
    expect(await world[kind]()).toBe('new');
  });

  test('are closed with the others, even while a request keeps a replaced one open', async () => {
    const world = await startMoving();
    const slow = world.read('/held');
    await expect.poll(() => world.old.held.length).toBe(1);
    world.pass(MAX_AGE_MS + 1);
    await world.read();
    // Expected before the close, because the request fails while that is awaited.
    const failed = expect(slow).rejects.toThrow();
    await world.connections.close();
    await failed;
  });
});
