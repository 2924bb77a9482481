// The connections to a server: undici pools for reads and ePIC v2, a node:http agent for writes.
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
  /** Maximum connections per server, separately for reads and for writes. */
  connections: number;
}

export interface Connections {
  /** For shared reads and for requests on behalf of a caller: one pool per server. */
  dispatcher: UpstreamDispatcher;
  /** For http-proxy-middleware, which forwards writes to the server at `url`. */
  writeAgent: http.Agent;
  /** Closes all connections, also those in use. */
  close: () => Promise<void>;
}

/** A dispatcher that can be closed. */
export interface ClosableDispatcher extends UpstreamDispatcher {
  destroy: () => Promise<void>;
}

/** Creates pool and agent without opening a connection. */
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

/** Idle connections are closed after this time (ms), or earlier if the server announces a shorter one. */
const IDLE_MS = 4000;

/** Timeout for connecting (ms), so that a server that accepts no connections does not use up the whole timeout. */
const CONNECT_MS = 10_000;

/** Creates one undici pool per origin; mirrors share the options. */
export function createPools(
  { connections, ...trust }: ConnectionOptions,
  connect = createConnector(trust),
): ClosableDispatcher {
  const options = {
    connect,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Disabled, because they are accurate to a second only; each exchange has its own timeout.
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

  /** A client outside the pool, whose other idle connections may be dead too. */
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
    // undici writes the request as soon as it gets the socket, so the check comes before that.
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
  /** PEM text of the only trusted authorities. */
  ca?: string | undefined;
  /** SHA-256 fingerprints of the only trusted certificates, comma-separated; chain and name are then ignored. */
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

/** Options of a TLS connection. With a pin no session is cached, because a resumed one may lack the certificate. */
function tlsOptions({ ca, fingerprint }: Trust): {
  ca?: string;
  rejectUnauthorized?: boolean;
  maxCachedSessions?: number;
} {
  if (fingerprint !== undefined) return { rejectUnauthorized: false, maxCachedSessions: 0 };
  return ca === undefined ? {} : { ca };
}

/** The error of a connected socket with another certificate than the pinned ones; undefined if it may be used. */
type PinCheck = (socket: TLSSocket) => Error | undefined;

/** Creates the check for fingerprints in hex, with or without colons. */
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
  /** SHA-256 fingerprint in the form of `upstream.fingerprint`. */
  fingerprint: string;
  /** Expiry as ISO 8601. */
  expires: string;
}

/** Reads the certificate of a server without verifying it, so that rejected ones can be compared; sends nothing. */
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

/** Undefined for a certificate that OpenSSL accepts but Node cannot parse. */
function describe(raw: Buffer): Certificate | undefined {
  try {
    const { fingerprint256, validTo } = new X509Certificate(raw);
    return { fingerprint: fingerprint256, expires: new Date(validTo).toISOString() };
  } catch {
    return undefined;
  }
}

/** Creates the agent without opening a connection. */
function createWriteAgent({
  url,
  connections,
  ...trust
}: Trust & { url: string; connections: number }): http.Agent {
  // Writes are never retried, so they must not get a connection that the server is about to close:
  // idle ones are closed before servers do so (Jetty after 30 s, Node after 5 s).
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

/** Timeout for the handshake (ms): a request has no socket to time out on before it ends. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Node's agent writes a request during the handshake, so a failed handshake fails the write and its reason is lost. In
 * the asynchronous form createConnection returns nothing, so no request is written before the callback.
 */
export class TlsAgent extends https.Agent {
  readonly #checkPin: PinCheck;
  /** Sockets in the handshake, which `Agent.destroy` does not know yet. */
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
 * Unsolicited bytes would be parsed as part of the next response, which belongs to another caller. Node detaches the
 * parser from a connection when the response is complete, even while it is still being read. undici closes such
 * connections without help.
 */
function destroyOnUnsolicitedData(socket: Socket & { parser?: unknown }): void {
  // The first listener sees each chunk before Node's listener may detach the parser (_http_client.js).
  socket.prependListener('data', () => {
    if (socket.parser === undefined || socket.parser === null) socket.destroy();
  });
}
