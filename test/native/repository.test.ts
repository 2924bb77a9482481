// DSpace behind the proxy, over real sockets: resolution over every protocol, even while DSpace is down.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { OP_FLAG } from '../../src/plugins/native/codec.js';
import { exchangeTcp, exchangeUdp } from '../support/native-client.js';
import { PUBLIC, codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import '../support/real-sockets.js';

const HANDLE = '123456/1';
const PAGE = 'https://ui.repository.test/handle/123456/1';
const MESSAGE_TYPE = 'application/x-hdl-message';

/** Starts a server that responds like the resolver of a DSpace with one handle. */
async function startDspace() {
  const asked: string[] = [];
  const server = createServer(({ url = '' }, res) => {
    asked.push(url);
    res.setHeader('Content-Type', 'application/json;charset=utf-8');
    res.end(url === `/server/resolve/${HANDLE}` ? JSON.stringify([PAGE]) : 'null');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(stop);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/server`, asked, stop };
}

async function start() {
  const dspace = await startDspace();
  const proxy = await startProxy({
    UPSTREAMS: JSON.stringify([{ prefixes: '123456', kind: 'dspace', url: dspace.url }]),
    NATIVE_TCP_PORT: '0',
    NATIVE_UDP_PORT: '0',
  });
  return { dspace, proxy };
}

const headers = { Accept: MESSAGE_TYPE, 'Content-Type': MESSAGE_TYPE };

const TRANSPORTS = {
  tcp: ({ tcpPort }: Proxy, request: Buffer) => exchangeTcp(tcpPort, [request]),
  udp: async ({ udpPort }: Proxy, request: Buffer) => Buffer.concat(await exchangeUdp(udpPort, [request])),
  tunnel: async ({ ask }: Proxy, request: Buffer) =>
    (await ask('/', { method: 'POST', body: request, headers })).body,
};

/** Resolves the handle as a redirect and over each native transport. Returns the Location and URL values. */
async function resolveEverywhere(proxy: Proxy, flags = PUBLIC): Promise<unknown[]> {
  const found: unknown[] = [(await proxy.ask(`/${HANDLE}`)).headers['location']];
  for (const send of Object.values(TRANSPORTS)) {
    const { body } = readResponse(await send(proxy, nativeRequest(HANDLE, { flags })));
    found.push(
      body.kind === 'record' ? body.values.map(({ data }) => (data as { value: unknown }).value) : body.kind,
    );
  }
  return found;
}

const EVERYWHERE = [PAGE, [PAGE], [PAGE], [PAGE]];

describe('DSpace handle', () => {
  it('resolves over TCP, UDP, the tunnel and as a redirect with a single upstream request', async () => {
    const { dspace, proxy } = await start();
    expect(await resolveEverywhere(proxy)).toEqual(EVERYWHERE);
    expect(dspace.asked).toEqual([`/server/resolve/${HANDLE}`]);
  });

  it('resolves for a request that includes private values', async () => {
    const { proxy } = await start();
    expect(await resolveEverywhere(proxy, PUBLIC & ~OP_FLAG.publicOnly)).toEqual(EVERYWHERE);
  });

  it('resolves from the cache, fresh and then stale, while DSpace is down', async () => {
    const { dspace, proxy } = await start();
    await resolveEverywhere(proxy);
    dspace.stop();
    expect(await resolveEverywhere(proxy)).toEqual(EVERYWHERE);
    proxy.pass(101_000);
    expect(await resolveEverywhere(proxy)).toEqual(EVERYWHERE);
    expect(await resolveEverywhere(proxy, PUBLIC & ~OP_FLAG.publicOnly)).toEqual(EVERYWHERE);
  });

  it.each(Object.entries(TRANSPORTS))(
    'returns response code 100 over %s if it does not exist',
    async (_name, send) => {
      const { proxy } = await start();
      expect(codeOf(readResponse(await send(proxy, nativeRequest('123456/2'))))).toBe(100);
    },
  );
});
