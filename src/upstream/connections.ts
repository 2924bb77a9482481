// All connections to a server: undici pools for reads and ePIC v2, a node:http agent for writes.
import type http from 'node:http';
import type { TLSSocket } from 'node:tls';
import { Client, Pool, buildConnector } from 'undici';
import type { UpstreamDispatcher } from './exchange.js';
import { type Trust, createPinCheck, tlsOptions } from './fingerprint.js';
import { createWriteAgent } from './write-agent.js';

export interface ConnectionOptions extends Trust {
  /** Maximum connections per server, for reads and for writes each. */
  connections: number;
}

export interface Connections {
  /** For reads of shared records and for requests on behalf of one caller: one pool per server. */
  dispatcher: UpstreamDispatcher;
  /** For http-proxy-middleware, which forwards writes to the server at `url`. */
  writeAgent: http.Agent;
  /** Cuts every connection. */
  close: () => Promise<void>;
}

/** A dispatcher that can be closed. */
export interface ClosableDispatcher extends UpstreamDispatcher {
  destroy: () => Promise<void>;
}

/** Opens nothing yet. */
export function createConnections(
  options: ConnectionOptions & { url: string },
  createDispatcher: (options: ConnectionOptions) => ClosableDispatcher = createPools,
): Connections {
  const dispatcher = createDispatcher(options);
  const writeAgent = createWriteAgent(options);
  return {
    dispatcher,
    writeAgent,
    async close() {
      writeAgent.destroy();
      await dispatcher.destroy();
    },
  };
}

/** An idle connection is closed after this time, or earlier when the server announces a shorter one (ms). */
const IDLE_MS = 4000;

/** A server that accepts no connections must not use up the time limit of a whole request (ms). */
const CONNECT_MS = 10_000;

/** One undici pool per server, by its origin: mirrors share the options. */
export function createPools(
  { connections, ...trust }: ConnectionOptions,
  connect = createConnector(trust),
): ClosableDispatcher {
  const options = {
    connect,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Each exchange has its own time limit; these are accurate to a second only.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const pools = new Map<string, Pool>();
  const retries = new Set<Client>();

  function poolOf(origin: string): Pool {
    const pool = pools.get(origin) ?? new Pool(origin, { ...options, connections });
    pools.set(origin, pool);
    return pool;
  }

  /** Not from the pool: its other idle connections may be as dead as the one that failed. */
  function openForRetry(origin: string): Client {
    const client = new Client(origin, options);
    retries.add(client);
    client.once('disconnect', () => retries.delete(client));
    client.once('connectionError', () => retries.delete(client));
    return client;
  }

  return {
    dispatch(request, handler) {
      const origin = String(request.origin);
      if (request.reset !== true) return poolOf(origin).dispatch(request, handler);
      const client = openForRetry(origin);
      const isReady = client.dispatch(request, handler);
      void client.close();
      return isReady;
    },
    async destroy() {
      await Promise.all([...pools.values(), ...retries].map((client) => client.destroy()));
    },
  };
}

function createConnector(trust: Trust): buildConnector.connector {
  const connect = buildConnector({ ...tlsOptions(trust), timeout: CONNECT_MS });
  const checkPin = createPinCheck(trust);
  return function connectTrusted(options, connected) {
    // undici writes the request once it is given the socket, hence the check before that.
    connect(options, (...[error, socket]) => {
      if (error) {
        connected(error, null);
        return;
      }
      const mismatch = options.protocol === 'https:' ? checkPin(socket as TLSSocket) : undefined;
      if (mismatch) {
        socket.destroy();
        connected(mismatch, null);
      } else {
        connected(null, socket);
      }
    });
  };
}
