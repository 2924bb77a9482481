// All connections to a server: undici pools for reads and ePIC v2, a node:http agent for writes.
import http from 'node:http';
import { type TLSSocket, connect } from 'node:tls';
import { Client, Pool, buildConnector } from 'undici';
import type { UpstreamDispatcher } from './exchange.js';
import { PIN_MISMATCH } from './failure.js';
import { readFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import https from 'node:https';
import type { Duplex } from 'node:stream';

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

export interface Trust {
  /** PEM text of the only authorities to trust. */
  ca?: string | undefined;
  /** SHA-256 of the only certificates to trust, separated by commas; then neither chain nor name matters. */
  fingerprint?: string | undefined;
}

/** @throws Error when the file cannot be read */
export const readTrust = ({
  caFile,
  fingerprint,
}: {
  caFile?: string | undefined;
  fingerprint?: string | undefined;
}): Trust => ({ ca: caFile === undefined ? undefined : readFileSync(caFile, 'utf8'), fingerprint });

/** Options of a TLS connection. A resumed session may come without a certificate, so none is kept for a pin. */
function tlsOptions({ ca, fingerprint }: Trust): {
  ca?: string;
  rejectUnauthorized?: boolean;
  maxCachedSessions?: number;
} {
  if (fingerprint !== undefined) return { rejectUnauthorized: false, maxCachedSessions: 0 };
  return ca === undefined ? {} : { ca };
}

/** The error for a connected socket whose certificate is not the pinned one; undefined when it may be used. */
type PinCheck = (socket: TLSSocket) => Error | undefined;

/** Makes the check for fingerprints in hexadecimal, with or without colons. */
function createPinCheck({ fingerprint }: Trust): PinCheck {
  if (fingerprint === undefined) return () => undefined;
  const pinned = fingerprint.split(',').map(plainHex);
  return function checkPin(socket) {
    const { fingerprint256 = '' } = socket.getPeerCertificate() as { fingerprint256?: string };
    if (pinned.includes(plainHex(fingerprint256))) return undefined;
    const error = new Error(`certificate has the SHA-256 fingerprint ${fingerprint256 || '(none)'}`);
    return Object.assign(error, { code: PIN_MISMATCH });
  };
}

const plainHex = (fingerprint: string): string => fingerprint.replaceAll(':', '').toUpperCase();

export interface Certificate {
  /** SHA-256, as `upstream.fingerprint` takes it. */
  fingerprint: string;
  /** ISO 8601. */
  expires: string;
}

/** Trusts every certificate, so that one that is refused can be compared too; sends nothing over the connection. */
export function presentedCertificate(
  url: string,
  { timeoutMs, defaultPort = 443 }: { timeoutMs: number; defaultPort?: number },
): Promise<Certificate | undefined> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const name = isIP(host) === 0 ? { servername: host } : {};
  const at = { host, port: Number(port || defaultPort), rejectUnauthorized: false, ...name };
  return new Promise((resolve) => {
    const socket = connect(at, () => {
      const { raw } = socket.getPeerCertificate() as { raw?: Buffer };
      resolve(raw && describe(raw));
      socket.destroy();
    });
    socket.setTimeout(timeoutMs, () => socket.destroy());
    socket
      .on('error', () => undefined)
      .once('close', () => {
        resolve(undefined);
      });
  });
}

/** Undefined for one that OpenSSL accepts and Node cannot read. */
function describe(raw: Buffer): Certificate | undefined {
  try {
    const { fingerprint256, validTo } = new X509Certificate(raw);
    return { fingerprint: fingerprint256, expires: new Date(validTo).toISOString() };
  } catch {
    return undefined;
  }
}

/** Opens nothing yet. */
function createWriteAgent({
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
