// The node:http agent for writes, which http-proxy-middleware forwards.
import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { type PinCheck, type Trust, createPinCheck, tlsOptions } from './fingerprint.js';

/** Opens nothing yet. */
export function createWriteAgent({
  url,
  connections,
  ...trust
}: Trust & { url: string; connections: number }): http.Agent {
  // A write is never sent twice, so it must not get a connection that the server is about to close:
  // idle ones are closed long before a server would do so (Jetty after 30 s, Node after 5 s).
  const options = { keepAlive: true, maxSockets: connections, timeout: 4000 };
  if (new URL(url).protocol === 'https:') return new TlsAgent(options, trust);
  const agent = new http.Agent(options);
  const create = agent.createConnection.bind(agent);
  agent.createConnection = (given, created) => {
    const socket = create(given, created) as Socket;
    destroyOnUnsolicitedData(socket);
    return socket;
  };
  return agent;
}

type Created = (error: Error | null, socket: Duplex) => void;

/** A request has no socket to time out on before the handshake ends, so the handshake has a time limit. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Node's own agent writes a request during the handshake: what fails then is a write, and the reason is lost. In its
 * asynchronous form createConnection returns nothing, so no request is written before the callback.
 */
export class TlsAgent extends https.Agent {
  readonly #checkPin: PinCheck;
  /** An Agent lists a connection only after it was handed out. */
  readonly #handshaking = new Set<TLSSocket>();

  constructor(options: https.AgentOptions, trust: Trust) {
    super({ ...options, ...tlsOptions(trust) });
    this.#checkPin = createPinCheck(trust);
  }

  override createConnection(options: https.RequestOptions, created?: Created): undefined {
    const socket = super.createConnection(options) as TLSSocket;
    destroyOnUnsolicitedData(socket);
    this.#handshaking.add(socket);
    socket.once('close', () => this.#handshaking.delete(socket));
    const fail = (error: Error): void => {
      socket.destroy();
      created?.(error, socket);
    };
    const onTimeout = (): void => {
      fail(Object.assign(new Error('TLS handshake took too long'), { code: 'ETIMEDOUT' }));
    };
    socket.setTimeout(HANDSHAKE_TIMEOUT_MS, onTimeout);
    socket.once('error', fail);
    socket.once('secureConnect', () => {
      this.#handshaking.delete(socket);
      socket.setTimeout(0);
      socket.off('timeout', onTimeout);
      socket.off('error', fail);
      const mismatch = this.#checkPin(socket);
      if (mismatch) fail(mismatch);
      else created?.(null, socket);
    });
  }

  override destroy(): void {
    for (const socket of this.#handshaking) socket.destroy(new Error('the agent is closed'));
    super.destroy();
  }
}

/**
 * Unsolicited bytes would be taken for a part of the next response, which belongs to another caller. Node takes its
 * parser off a connection when the response is complete, even while that response is still being read. undici closes
 * such a connection by itself.
 */
function destroyOnUnsolicitedData(socket: Socket & { parser?: unknown }): void {
  // The first listener, so that it sees each chunk before Node's own may take the parser off (_http_client.js).
  socket.prependListener('data', () => {
    if (socket.parser === undefined || socket.parser === null) socket.destroy();
  });
}
