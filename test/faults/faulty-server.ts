// A minimal Handle server on a real socket, with faults on demand and a request counter.
import dns from 'node:dns';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import net, { type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { onTestFinished, vi } from 'vitest';
import { numbered } from '../support/demo-writes.js';
import type { Certificate } from '../support/certificate.js';
import { freePort } from '../support/free-port.js';

/** Replaces the server's response. `answer` sends the normal response. */
export type Misbehave = (response: http.ServerResponse, answer: () => void) => void;

export interface FaultyServer {
  url: string;
  port: number;
  /** Returns the number of requests since the last call. */
  takeRequests: () => number;
  /** Returns the number of connection attempts since the last call, for a server looked up by name. */
  takeLookups: () => number;
  /** Sets the number in every later record. */
  holds: (count: number) => void;
  misbehave: (how: Misbehave) => void;
  /** Closes the port, so connections are refused. */
  refuse: () => Promise<void>;
  /** Accepts no connections and drops packets. */
  vanish: () => Promise<void>;
  /** Makes the host name unknown. */
  loseName: () => void;
  show: (certificate: Certificate) => void;
  heal: () => Promise<void>;
}

const NAME = 'handle.test';
const HOME = '127.0.0.1';
const NOWHERE = '127.0.0.2';

/** Starts the server. Clients use its address over HTTPS, otherwise a name that `loseName` makes unknown. */
export async function startFaultyServer(certificate?: Certificate): Promise<FaultyServer> {
  const state = { count: 1, requests: 0, lookups: 0, address: HOME, how: undefined as Misbehave | undefined };
  const sockets = new Set<Socket>();
  const listener: http.RequestListener = (request, response) => {
    state.requests++;
    const reply = JSON.stringify({
      responseCode: 1,
      handle: handleOf(request),
      values: numbered(state.count),
    });
    request.resume().on('end', () => {
      const answer = (): unknown => response.writeHead(200, JSON_TYPE).end(reply);
      if (state.how) state.how(response, answer);
      else answer();
    });
  };
  const server = certificate ? https.createServer(certificate, listener) : http.createServer(listener);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const port = await freePort();
  server.listen(port, HOME);
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    cut();
    await once(server, 'close');
  };
  onTestFinished(close);
  watchLookups(state);
  return {
    url: certificate ? `https://${HOME}:${port}` : `http://${NAME}:${port}`,
    port,
    takeRequests: () => take(state, 'requests'),
    takeLookups: () => take(state, 'lookups'),
    holds: (count) => {
      state.count = count;
    },
    misbehave: (how) => {
      state.how = how;
    },
    refuse: close,
    async vanish() {
      await openBlackHole(port);
      state.address = NOWHERE;
      cut();
    },
    loseName() {
      state.address = '';
      cut();
    },
    show(shown) {
      (server as https.Server).setSecureContext(shown);
      cut();
    },
    async heal() {
      state.how = undefined;
      state.address = HOME;
      if (certificate) (server as https.Server).setSecureContext(certificate);
      cut();
      if (server.listening) return;
      server.listen(port, HOME);
      await once(server, 'listening');
    },
  };
}

const JSON_TYPE = { 'Content-Type': 'application/json;charset=UTF-8' };

const handleOf = ({ url = '' }: http.IncomingMessage): string =>
  decodeURIComponent(new URL(url, 'http://x').pathname.slice('/api/handles/'.length));

function take(state: { requests: number; lookups: number }, what: 'requests' | 'lookups'): number {
  const { [what]: count } = state;
  state[what] = 0;
  return count;
}

type Found = (error: NodeJS.ErrnoException | null, address: unknown, family?: number) => void;

/** Counts calls of `dns.lookup`, which both undici and node:http make for every new connection. */
function watchLookups(state: { lookups: number; address: string }): void {
  const { lookup } = dns;
  const spy = vi.spyOn(dns, 'lookup') as unknown as { mockImplementation: (fake: unknown) => void };
  spy.mockImplementation((name: string, options: { all?: boolean }, found: Found) => {
    if (name !== NAME) {
      Reflect.apply(lookup, dns, [name, options, found]);
      return;
    }
    state.lookups++;
    const { address } = state;
    process.nextTick(() => {
      if (address === '') found(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), []);
      else if (options.all) found(null, [{ address, family: 4 }]);
      else found(null, address, 4);
    });
  });
}

/** Blocks the port with a full backlog, so a client gets no reply to its packets. */
async function openBlackHole(port: number): Promise<void> {
  const held = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(BLACK_HOLE, { eval: true, workerData: { port, host: NOWHERE, held } });
  const fillers = new Set<Socket>();
  onTestFinished(async () => {
    for (const socket of fillers) socket.destroy();
    await worker.terminate();
  });
  await once(worker, 'message');
  for (let tries = 0; tries < 10; tries++) {
    const socket = net.connect(port, NOWHERE).on('error', () => undefined);
    fillers.add(socket);
    const isConnected = await Promise.race([
      once(socket, 'connect').then(() => true),
      new Promise<false>((resolve) => setTimeout(resolve, 300, false)),
    ]);
    if (!isConnected) return;
  }
  throw new Error('the queue of connections never got full');
}

/** Code of a thread that listens with the smallest backlog and then blocks. */
const BLACK_HOLE = `
const { parentPort, workerData } = require('node:worker_threads');
const { port, host, held } = workerData;
require('node:net').createServer().listen({ port, host, backlog: 1 }, () => {
  parentPort.postMessage('listening');
  Atomics.wait(held, 0, 0);
});`;
