// The connections to the Handle server: for reads, for a second try, and for writes; all trust the same.
import http from 'node:http';
import type { TLSSocket } from 'node:tls';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { createPinCheck } from './fingerprint.js';
import { type ReadAgentsByProtocol, createReadAgents } from './read-agents.js';
import { TlsAgent, type Trust } from './tls-agent.js';
import { closeOnUnsolicitedData } from './unsolicited-data.js';

export interface AgentOptions extends Trust {
  url: string;
  /** Most connections of each kind at a time. */
  connections: number;
}

export interface Agents {
  /** For reads whose answers all callers share. */
  reads: ReadAgentsByProtocol;
  /** For fetch, which asks on behalf of one caller; keeps its connections for the next request. */
  dispatcher: Dispatcher;
  /** Opens a connection for each request: what a dead kept-alive socket cannot spoil. */
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
  const reads = createReadAgents(connections, options);
  return {
    reads,
    dispatcher,
    freshDispatcher,
    nodeAgent,
    async close() {
      nodeAgent.destroy();
      for (const { kept, fresh } of Object.values(reads)) {
        kept.destroy();
        fresh.destroy();
      }
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

function createNodeAgent({ url, connections, ...trust }: AgentOptions): http.Agent {
  // A write is never sent twice, so it must not meet a connection the server is about to give up:
  // idle ones are closed long before a server would (Jetty after 30 s, Node after 5 s).
  const options = { keepAlive: true, maxSockets: connections, timeout: 4000 };
  const isPlain = new URL(url).protocol === 'http:';
  return isPlain ? closeOnUnsolicitedData(new http.Agent(options)) : new TlsAgent(options, trust);
}
