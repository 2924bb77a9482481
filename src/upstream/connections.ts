// Connections to a server: undici pools for reads and ePIC v2, a node:http agent for writes.
import http from 'node:http';
import { type TLSSocket, connect } from 'node:tls';
import { Client, Pool, buildConnector } from 'undici';
import type { UpstreamDispatcher } from './exchange.js';
import { PIN_MISMATCH } from './failure.js';
import { readFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import https from 'node:https';
import type { Duplex } from 'node:stream';

export interface ConnectionOptions extends Trust {
  /** Maximum connections per server, separately for reads and for writes. */
  connections: number;
  /** Resolves host names; by default as the system does. */
  lookup?: LookupFunction | undefined;
  /** Monotonic clock (ms). */
  now?: () => number;
}

export interface Connections {
  /** One pool per server, for shared reads and for requests on behalf of a caller. */
  dispatcher: UpstreamDispatcher;
  /** For http-proxy-middleware, which forwards writes to `url`. */
  writeAgent: http.Agent;
  /** Closes all connections, including active ones. */
  close: () => Promise<void>;
}

export interface ClosableDispatcher extends UpstreamDispatcher {
  destroy: () => Promise<void>;
}

/** Creates the pool and the agent without opening a connection. */
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

/** Idle timeout of a connection (ms), unless the server announces a shorter one. */
const IDLE_MS = 4000;

/** Connect timeout (ms), so that an unreachable server does not use up the whole request timeout. */
const CONNECT_MS = 10_000;

/**
 * Maximum age of a connection (ms). A connection in use never looks up its host name again, and would send reads
 * and writes to a server that has moved.
 */
export const MAX_AGE_MS = 120_000;

const monotonic = (): number => performance.now();

/**
 * Creates one undici pool per origin; secondaries share the options. A pool of the maximum age is replaced, and
 * closes once its requests have ended.
 */
export function createPools(
  { connections, now = monotonic, lookup, ...trust }: ConnectionOptions,
  connect = createConnector(trust, lookup),
): ClosableDispatcher {
  const options = {
    connect,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Disabled: undici's timers are accurate only to a second, and each exchange has its own timeout.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const pools = new Map<string, { pool: Pool; createdAt: number }>();
  /** Pools that were replaced, until their last request has ended. */
  const replaced = new Set<Pool>();
  const retries = new Set<Client>();

  function poolOf(origin: string): Pool {
    const known = pools.get(origin);
    if (known !== undefined && now() - known.createdAt < MAX_AGE_MS) return known.pool;
    const pool = new Pool(origin, { ...options, connections });
    pools.set(origin, { pool, createdAt: now() });
    if (known !== undefined) closeReplaced(known.pool);
    return pool;
  }

  function closeReplaced(pool: Pool): void {
    replaced.add(pool);
    const forget = () => replaced.delete(pool);
    pool.close().then(forget, forget);
  }

  /** Opens a connection outside the pool, whose idle connections may be dead too. */
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
      const current = [...pools.values()].map(({ pool }) => pool);
      await Promise.all([...current, ...replaced, ...retries].map((client) => client.destroy()));
    },
  };
}

function createConnector(trust: Trust, lookup?: LookupFunction): buildConnector.connector {
  const connect = buildConnector({ ...tlsOptions(trust), ...(lookup && { lookup }), timeout: CONNECT_MS });
  const checkPin = createPinCheck(trust);
  return function connectTrusted(options, connected) {
    // undici writes the request as soon as it gets the socket, so the pin is checked first.
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
  /** PEM text of the only trusted certificate authorities. */
  ca?: string | undefined;
  /**
   * SHA-256 fingerprints of the only trusted certificates, comma-separated; disables chain and name checks.
   */
  fingerprint?: string | undefined;
}

/** Reads the CA file. @throws Error if it cannot be read */
export const readTrust = ({
  caFile,
  fingerprint,
}: {
  caFile?: string | undefined;
  fingerprint?: string | undefined;
}): Trust => ({ ca: caFile === undefined ? undefined : readFileSync(caFile, 'utf8'), fingerprint });

/**
 * Returns TLS connection options. A pin disables session caching, because a resumed
 * session may lack the certificate.
 */
function tlsOptions({ ca, fingerprint }: Trust): {
  ca?: string;
  rejectUnauthorized?: boolean;
  maxCachedSessions?: number;
} {
  if (fingerprint !== undefined) return { rejectUnauthorized: false, maxCachedSessions: 0 };
  return ca === undefined ? {} : { ca };
}

/** Returns an error for a certificate that is not pinned; undefined if the socket may be used. */
type PinCheck = (socket: TLSSocket) => Error | undefined;

/** Creates the pin check; fingerprints are in hex, with or without colons. */
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
  /** SHA-256 fingerprint in the format of `upstream.fingerprint`. */
  fingerprint: string;
  /** Expiry as ISO 8601. */
  expires: string;
}

/**
 * Reads a server's certificate without verifying it, so that the operator can examine a rejected one. Sends
 * no request.
 */
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
      resolve(raw && describeCertificate(raw));
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

/** Returns undefined for a certificate that OpenSSL accepts but Node cannot parse. */
function describeCertificate(raw: Buffer): Certificate | undefined {
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
  lookup,
  now = monotonic,
  ...trust
}: ConnectionOptions & { url: string }): http.Agent {
  // Writes are never retried, so they must not use a connection that the server is about to close. Idle
  // connections close before servers close them (Jetty after 30 s, Node after 5 s).
  const options = { keepAlive: true, maxSockets: connections, timeout: 4000, ...(lookup && { lookup }) };
  const isTls = new URL(url).protocol === 'https:';
  const agent = isTls ? new TlsAgent(options, trust) : new http.Agent(options);
  const openedAt = new WeakMap<Duplex, number>();
  const prepare = (socket: Duplex): void => {
    openedAt.set(socket, now());
    destroyOnUnsolicitedData(socket);
  };
  const create = agent.createConnection.bind(agent);
  agent.createConnection = (given, created) => {
    if (isTls) {
      return create(given, (error, socket) => {
        prepare(socket);
        created?.(error, socket);
      });
    }
    const socket = create(given, created) as Socket;
    prepare(socket);
    return socket;
  };
  // As the first listener, it runs before the agent's listener gives the connection to the next request.
  agent.prependListener('free', (socket: Duplex) => {
    if (now() - (openedAt.get(socket) ?? 0) >= MAX_AGE_MS) socket.destroy();
  });
  return agent;
}

type Created = (error: Error | null, socket: Duplex) => void;

/** TLS handshake timeout (ms): until the handshake ends, the request has no socket with a timeout. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Delays requests until the TLS handshake ends. Node's agent writes a request during the handshake, so a
 * failed handshake fails the write and its cause is lost. An asynchronous createConnection returns undefined,
 * so Node writes the request only after the callback.
 */
export class TlsAgent extends https.Agent {
  readonly #checkPin: PinCheck;
  /** Sockets in the handshake, which `Agent.destroy` does not track yet. */
  readonly #handshaking = new Set<TLSSocket>();

  constructor(options: https.AgentOptions, trust: Trust) {
    super({ ...options, ...tlsOptions(trust) });
    this.#checkPin = createPinCheck(trust);
  }

  override createConnection(options: https.RequestOptions, created?: Created): undefined {
    const socket = super.createConnection(options) as TLSSocket;
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
 * Closes a connection on unsolicited bytes, which would be parsed as part of the next response, for a
 * different caller. Node detaches the parser when a response is complete, even if the application is still
 * reading it. undici closes these connections itself.
 */
function destroyOnUnsolicitedData(socket: Duplex & { parser?: unknown }): void {
  // As the first listener, it runs before Node's listener detaches the parser (_http_client.js).
  socket.prependListener('data', () => {
    if (socket.parser === undefined || socket.parser === null) socket.destroy();
  });
}
