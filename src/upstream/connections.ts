// Connections to a server: undici pools for reads and ePIC v2, a node:http agent for writes.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { Pool, buildConnector } from 'undici';
import { outgoingProxy } from '../config/outgoing-proxy.js';
import type { UpstreamDispatcher } from './exchange.js';
import { PIN_MISMATCH, noteOpen } from './failure.js';
import { CONNECT_MS, type ConnectorOptions, lookupHost, openTunnel, withoutBrackets } from './hosts.js';

export interface ConnectionOptions extends Trust {
  /** Maximum connections per server, separately for reads and for writes. */
  connections: number;
  /** Resolves host names; by default as the system does (`hosts.ts`). */
  lookup?: LookupFunction | undefined;
  /** Monotonic clock (ms). */
  now?: () => number;
}

export interface ClosableDispatcher extends UpstreamDispatcher {
  destroy: () => Promise<void>;
}

/** Creates a sender that uses the outgoing proxy, for destinations that are not Handle servers. */
export function createSender() {
  const { dispatch, destroy } = createPools({ connections: 1 });
  const dispatcher = { dispatch } as unknown as NonNullable<RequestInit['dispatcher']>;
  return {
    /**
     * Sends a request, and discards the body of the response. Takes no signal but its own: Node.js 20 keeps each signal
     * derived with `AbortSignal.any` in memory for as long as its source. `close` ends requests in flight.
     *
     * @throws Error for a redirect, or without a response in time
     */
    async send(
      url: string,
      init: RequestInit & { signal?: undefined },
      timeoutMs: number,
    ): Promise<Response> {
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        const response = await globalThis.fetch(url, { ...init, redirect: 'error', signal, dispatcher });
        await response.body?.cancel();
        return response;
      } catch (error) {
        const proxy = signal.aborted ? outgoingProxy(new URL(url)) : undefined;
        if (proxy === undefined) throw error;
        throw new Error(`no response in time through the outgoing proxy ${proxy.host}`);
      }
    },
    close: destroy,
  };
}

/**
 * Creates, without opening a connection, the pools for shared reads and for requests on behalf of a caller, and the agent
 * for http-proxy-middleware, which forwards writes to `url`.
 */
export function createConnections(
  options: ConnectionOptions & { url: string },
  createDispatcher: (options: ConnectionOptions) => ClosableDispatcher = createPools,
) {
  const dispatcher = createDispatcher(options);
  const writeAgent = createWriteAgent(options);
  return {
    dispatcher,
    writeAgent,
    /** Closes all connections, including active ones. */
    close: async (): Promise<void> => {
      writeAgent.destroy();
      await dispatcher.destroy();
    },
  };
}

/** Idle timeout of a connection (ms), unless the server announces a shorter one. */
const IDLE_MS = 4000;

/** Maximum age of a connection (ms): one in use never looks up its host again, and misses that a server has moved. */
export const MAX_AGE_MS = 120_000;

const monotonic = (): number => performance.now();

/** Creates an undici pool per origin, with shared options; at the maximum age it is replaced, and closes when unused. */
export function createPools(
  { connections, now = monotonic, lookup, ...trust }: ConnectionOptions,
  connect = createTrustedConnector(trust, { lookup }),
): ClosableDispatcher {
  const options: Pool.Options = {
    connect(to, connected) {
      connect(to, (...given) => {
        if (given[1] !== null) discardContinue(given[1]);
        connected(...given);
      });
    },
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Disabled: undici's timers are accurate only to a second, and each exchange has its own timeout.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const pools = new Map<string, { pool: Pool; createdAt: number }>();
  /** Pools that close once their last request has ended. */
  const closing = new Set<Pool>();
  let isDestroyed = false;

  function open(origin: string, most?: Pool.Options): Pool {
    const pool = new Pool(origin, { ...options, ...most });
    if (isDestroyed) void pool.destroy();
    return pool;
  }

  function closeLater(pool: Pool): void {
    closing.add(pool);
    const forget = () => closing.delete(pool);
    pool.close().then(forget, forget);
  }

  function poolOf(origin: string): Pool {
    const known = pools.get(origin);
    if (known !== undefined && now() - known.createdAt < MAX_AGE_MS) return known.pool;
    const pool = open(origin, { connections });
    pools.set(origin, { pool, createdAt: now() });
    if (known !== undefined) closeLater(known.pool);
    return pool;
  }

  return {
    dispatch(request, handler) {
      const origin = String(request.origin);
      if (request.reset !== true) return poolOf(origin).dispatch(request, handler);
      // A retry has its own pool, because the idle connections of the other may be dead too.
      const pool = open(origin);
      const isReady = pool.dispatch(request, handler);
      closeLater(pool);
      return isReady;
    },
    /** Ends requests in flight, and rejects all further ones. */
    async destroy() {
      isDestroyed = true;
      const current = [...pools.values()].map(({ pool }) => pool);
      await Promise.all([...current, ...closing].map((pool) => pool.destroy()));
    },
  };
}

/** Returns a callback that passes an error on, and uses a socket. */
const orFail =
  (connected: buildConnector.Callback, use: (socket: Socket | TLSSocket) => void): buildConnector.Callback =>
  (...[error, socket]) => {
    if (error) connected(error, null);
    else use(socket);
  };

/** Responses with 100 discarded for a request; a server could send them without end. undici refuses the next one. */
const MAX_CONTINUES = 1000;

/**
 * Discards responses with 100, which a client must accept unasked (RFC 9110 §15.2): undici would close the connection
 * (its issue 197). Only bytes between a request and its response are examined, because a body may look the same.
 */
function discardContinue(socket: Socket): void {
  const write = socket.write.bind(socket) as (...given: unknown[]) => boolean;
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
  let left = MAX_CONTINUES;
  const readFirst = (size?: number): Buffer | null => {
    let chunk = read(size);
    while (chunk !== null) {
      const end = chunk.toString('latin1', 0, 12) === 'HTTP/1.1 100' ? chunk.indexOf('\r\n\r\n') : -1;
      if (end === -1 || left-- === 0) {
        socket.read = read;
        return chunk;
      }
      chunk = end + 4 < chunk.length ? chunk.subarray(end + 4) : read();
    }
    return chunk;
  };
  socket.write = (...given: unknown[]) => {
    socket.read = readFirst;
    left = MAX_CONTINUES;
    return write(...given);
  };
}

/**
 * Creates a connector of undici that tunnels through the outgoing proxy, if there is one for the destination. With a
 * `lookup`, host names are resolved here, and the proxy gets an address.
 */
export function createConnector(
  tls: buildConnector.BuildOptions,
  { lookup, signal }: ConnectorOptions,
  timeout = CONNECT_MS,
): buildConnector.connector {
  const connect = buildConnector({ ...tls, lookup: lookup ?? lookupHost, signal, timeout });
  return function connectByProxy(to, connected) {
    const proxy = outgoingProxy(to);
    if (proxy === undefined) {
      connect(to, connected);
      return;
    }
    const use = (httpSocket: Socket): void => {
      if (to.protocol === 'https:') connect({ ...to, httpSocket }, connected);
      else connected(null, httpSocket);
    };
    openTunnel(proxy, to, { lookup, signal, timeoutMs: timeout }, orFail(connected, use));
  };
}

function createTrustedConnector(trust: Trust, options: ConnectorOptions): buildConnector.connector {
  const connect = createConnector(tlsOptions(trust), options);
  const checkPin = createPinCheck(trust);
  return function connectTrusted(to, connected) {
    // undici writes the request as soon as it gets the socket, so the pin is checked first.
    const use = (socket: Socket | TLSSocket): void => {
      const mismatch = to.protocol === 'https:' ? checkPin(socket as TLSSocket) : undefined;
      if (mismatch) {
        socket.destroy();
        connected(mismatch, null);
        return;
      }
      // Node emits a TLS alert without destroying the socket, and undici would report the end that follows instead.
      socket.once('error', () => socket.destroy());
      noteOpen(socket);
      connected(null, socket);
    };
    connect(to, orFail(connected, use));
  };
}

export interface Trust {
  /** PEM text of the only trusted certificate authorities. */
  ca?: string | undefined;
  /** SHA-256 fingerprints of the only trusted certificates, comma-separated; disables chain and name checks. */
  fingerprint?: string | undefined;
  /** PEM text of the client certificate, and of its chain. */
  cert?: string | undefined;
  /** PEM text of the private key of `cert`. */
  key?: string | undefined;
}

interface TrustFiles {
  caFile?: string | undefined;
  fingerprint?: string | undefined;
  clientCertificateFile?: string | undefined;
  clientKeyFile?: string | undefined;
}

/** Reads the PEM files. @throws Error if one cannot be read */
export function readTrust({ caFile, fingerprint, clientCertificateFile, clientKeyFile }: TrustFiles): Trust {
  const read = (path: string | undefined) => (path === undefined ? undefined : readFileSync(path, 'utf8'));
  return { ca: read(caFile), fingerprint, cert: read(clientCertificateFile), key: read(clientKeyFile) };
}

/** Returns TLS options. A pin disables session caching, because a resumed session may lack the certificate. */
function tlsOptions({ ca, fingerprint, cert, key }: Trust): buildConnector.BuildOptions {
  return fingerprint === undefined
    ? { ca, cert, key }
    : { cert, key, rejectUnauthorized: false, maxCachedSessions: 0 };
}

/** Creates the check that returns an error for an unpinned certificate. Fingerprints are hex, with or without colons. */
function createPinCheck({ fingerprint }: Trust): (socket: TLSSocket) => Error | undefined {
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

type Created = (error: Error | null, socket?: Duplex) => void;

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
  const options = {
    ...{ keepAlive: true, maxSockets: connections, timeout: IDLE_MS },
    lookup: lookup ?? lookupHost,
  };
  const { protocol, hostname, host, port } = new URL(url);
  const to = { protocol, hostname: withoutBrackets(hostname), host, port };
  const agent = protocol === 'https:' ? new https.Agent(options) : new http.Agent(options);
  const openedAt = new WeakMap<Duplex, number>();
  const prepare = (socket: Duplex): void => {
    openedAt.set(socket, now());
    destroyOnUnsolicitedData(socket);
  };
  /** The connections that are opening: the agent knows only open ones. */
  const opening = new Set<AbortController>();
  let isDestroyed = false;
  agent.createConnection = (_given, created) => {
    // A signal for each connection: Node.js keeps every socket in memory for as long as its signal.
    const ending = new AbortController();
    opening.add(ending);
    if (isDestroyed) ending.abort();
    const connect = createTrustedConnector(trust, { lookup, signal: ending.signal });
    // Without a socket, Node's agent waits for the callback. It would write a request before the connection is open, so
    // that a failed handshake would fail the write, and its cause would be lost.
    connect(to, (...[error, socket]) => {
      opening.delete(ending);
      if (error) {
        (created as Created | undefined)?.(error);
        return;
      }
      prepare(socket);
      created?.(null, socket);
    });
    return undefined;
  };
  const destroy = agent.destroy.bind(agent);
  agent.destroy = () => {
    isDestroyed = true;
    for (const ending of opening) ending.abort();
    destroy();
  };
  // As the first listener, it runs before the agent's listener gives the connection to the next request.
  agent.prependListener('free', (socket: Duplex) => {
    if (now() - (openedAt.get(socket) ?? 0) >= MAX_AGE_MS) socket.destroy();
  });
  return agent;
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
