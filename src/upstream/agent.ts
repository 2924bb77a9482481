// The connections to the Handle server: for reads, for a second try, and for writes; all trust the same.
import http from 'node:http';
import https from 'node:https';
import type { TLSSocket } from 'node:tls';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { createPinCheck } from './pin.js';
import { PinnedAgent } from './pinned-agent.js';

export interface AgentOptions {
  url: string;
  /** Most connections of each kind at a time. */
  connections: number;
  /** PEM text of the only authorities to trust. */
  ca?: string | undefined;
  /** SHA-256 of the only certificates to trust, separated by commas; then neither chain nor name matters. */
  fingerprint?: string | undefined;
}

export interface Agents {
  /** Keeps its connections for the next read. */
  dispatcher: Dispatcher;
  /** Opens a connection for each read: what a dead kept-alive socket cannot spoil. */
  freshDispatcher: Dispatcher;
  /** For http-proxy-middleware, which carries the writes. */
  nodeAgent: http.Agent;
  /** Cuts every connection. */
  close(): Promise<void>;
}

/** Opens nothing yet. */
export function createAgents(options: AgentOptions): Agents {
  const { connections } = options;
  const connect = createConnector(options);
  const dispatcher = new Agent({ connections, connect });
  // `pipelining: 0` is undici's way to say `Connection: close`.
  const freshDispatcher = new Agent({ connections, connect, pipelining: 0 });
  const nodeAgent = createNodeAgent(options);
  return {
    dispatcher,
    freshDispatcher,
    nodeAgent,
    async close() {
      nodeAgent.destroy();
      await Promise.all([dispatcher.destroy(), freshDispatcher.destroy()]);
    },
  };
}

function createConnector({ ca, fingerprint }: AgentOptions): buildConnector.connector {
  if (fingerprint === undefined) return buildConnector(ca === undefined ? {} : { ca });
  const connect = buildConnector({ rejectUnauthorized: false, maxCachedSessions: 0 });
  const checkPin = createPinCheck(fingerprint);
  return function connectPinned(options, connected) {
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

function createNodeAgent({ url, connections, ca, fingerprint }: AgentOptions): http.Agent {
  // A write is never sent twice, so it must not meet a connection the server is about to give up:
  // idle ones are closed long before a server would (Jetty after 30 s, Node after 5 s).
  const options = { keepAlive: true, maxSockets: connections, timeout: 4000 };
  if (new URL(url).protocol === 'http:') return new http.Agent(options);
  if (fingerprint !== undefined) return new PinnedAgent(options, createPinCheck(fingerprint));
  return new https.Agent(ca === undefined ? options : { ...options, ca });
}
