// The connections for reads over node:http: kept for the next one, or opened for a second try.
import http from 'node:http';
import type { Socket } from 'node:net';
import { TlsAgent, type Trust } from './tls-agent.js';
import { closeOnUnsolicitedData } from './unsolicited-data.js';

export interface ReadAgents {
  /** Keeps its connections for the next read. */
  kept: http.Agent;
  /** Opens a connection for each read: what a dead kept-alive socket cannot spoil. */
  fresh: http.Agent;
}

/** The mirrors of an `http` server may be at `https` addresses. */
export type ReadAgentsByProtocol = Record<'http:' | 'https:', ReadAgents>;

/** A connection that waits for so long without a question is closed, or earlier if the server says so (ms). */
const IDLE_MS = 4000;

/** Opens nothing yet. `maxSockets` is for each server. */
export function createReadAgents(maxSockets: number, trust: Trust): ReadAgentsByProtocol {
  const kept = { keepAlive: true, maxSockets, timeout: IDLE_MS };
  const fresh = { keepAlive: false, maxSockets };
  const plain = (options: http.AgentOptions): http.Agent =>
    limitConnecting(closeOnUnsolicitedData(new http.Agent(options)));
  const tls = (options: http.AgentOptions): http.Agent => new TlsAgent(options, trust);
  return {
    'http:': { kept: plain(kept), fresh: plain(fresh) },
    'https:': { kept: tls(kept), fresh: tls(fresh) },
  };
}

/** A server that takes no connections must not use up the time for a whole answer (ms). */
const CONNECT_MS = 10_000;

function limitConnecting(agent: http.Agent): http.Agent {
  const create = agent.createConnection.bind(agent);
  agent.createConnection = (options, created) => {
    const socket = create(options, created) as Socket;
    const timer = setTimeout(() => {
      socket.destroy(Object.assign(new Error('connecting took too long'), { code: 'ETIMEDOUT' }));
    }, CONNECT_MS);
    for (const event of ['connect', 'close']) {
      socket.once(event, () => {
        clearTimeout(timer);
      });
    }
    return socket;
  };
  return agent;
}
