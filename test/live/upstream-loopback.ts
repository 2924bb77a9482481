// Loopback servers with scripted faults, and an upstream client for them.
import { partial } from '../support/partial.js';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { onTestFinished } from 'vitest';
import { handleRef } from '../../src/handle/handle.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { createUpstreamClient } from '../../src/upstream/upstreams.js';
import type { ServerSettings } from '../../src/upstream/contract.js';
import { type ConnectionOptions, createConnections } from '../../src/upstream/connections.js';
import { keysAt } from '../../src/upstream/failure.js';
import { testContext } from '../support/context.js';
import { SETTINGS, createSlicer } from '../upstream/ask.js';
import type { Certificate } from '../support/certificate.js';

export const NOT_FOUND = '{"responseCode":100}';

/** A server for one test, with its port, the number of its connections, and the received HTTP requests. */
export interface Loopback {
  port: number;
  url: string;
  connections: () => number;
  received: () => string;
}

async function listen(server: net.Server, scheme: string): Promise<Loopback> {
  const sockets = new Set<net.Socket>();
  let connections = 0;
  let received = '';
  server.on('connection', (socket: net.Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('request', ({ method, url }: http.IncomingMessage) => {
    received += `${method ?? ''} ${url ?? ''}\n`;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    connections: () => connections,
    received: () => received,
  };
}

/** Starts a bare TCP server that calls `behave` for each chunk received from a client. */
export function listenRaw(behave: (socket: net.Socket) => void): Promise<Loopback> {
  const server = net.createServer((socket) => {
    socket.on('data', () => {
      behave(socket);
    });
  });
  return listen(server, 'http');
}

export function listenHttp(answer: http.RequestListener): Promise<Loopback> {
  return listen(http.createServer(answer), 'http');
}

export function listenTls({ key, cert }: Certificate, options: TlsOptions = {}): Promise<Loopback> {
  const server = https.createServer({ ...options, key, cert }, (_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end(NOT_FOUND);
  });
  server.on('tlsClientError', () => undefined);
  return listen(server, 'https');
}

/** Address of a server, and the trust settings for it. */
export type Target = ConnectionOptions & { url: string };

/** Opens connections that close at the end of the test. */
export function openConnections(target: Target): ReturnType<typeof createConnections> {
  const connections = createConnections(target);
  onTestFinished(() => connections.close());
  return connections;
}

/**
 * Opens an upstream client that always requests the same handle. Its only connection becomes reusable a
 * moment after its last response; in that moment a larger pool would open a second connection.
 */
export function openClient(
  { url, ca, fingerprint }: Omit<Target, 'connections'>,
  changes: Partial<ServerSettings> = {},
): { resolve: () => Promise<Outcome> } {
  const { dispatcher } = openConnections({ url, ca, fingerprint, connections: 1 });
  const client = createUpstreamClient(
    { ...SETTINGS, timeoutMs: 5000, url, ...changes },
    testContext(),
    partial({
      pseudonym: 'handle-resolver-proxy',
      dispatcher,
      slicer: createSlicer(),
    }),
    () => keysAt({ key: 'upstream', url }, url),
  );
  return { resolve: () => client.resolve({ handle: handleRef('21.T1/a', false), authoritative: false }) };
}
