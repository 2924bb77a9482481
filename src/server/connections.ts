// Open connections: tracked, and bounded in their number and in the time that their client takes to read.
import type { ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { onceAMinute } from '../clock.js';
import type { Context } from '../context.js';
import { type IsTrustedProxy, networkOf } from '../http/client-address.js';

export function trackConnections(server: Server): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return open;
}

/**
 * Returns a connection's current response. Node has no public name for this field, but its default parse
 * error handler reads it too. test/unit/node-internals fails if it changes.
 */
export const currentResponse = (socket: Duplex): ServerResponse | undefined =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;

/** Maximum check interval of the response timeout (ms); shorter timeouts use a quarter of their value. */
const CHECK_INTERVAL_MS = 2000;

/** Closes connections that are too slow to read a response or to close after it: each byte restarts Node's timeouts. */
export function limitResponseTime(server: Server, timeoutMs: number): void {
  const open = trackConnections(server);
  const firstSeenAt = new WeakMap<ServerResponse | Socket, number>();

  // A single timer for all connections adds no cost to a response.
  repeatUntilClosed(server, Math.min(CHECK_INTERVAL_MS, timeoutMs / 4), (now) => {
    for (const socket of open) {
      const response = currentResponse(socket);
      if (response?.headersSent !== true && !socket.writableEnded) continue;
      const awaited = response ?? socket;
      const since = firstSeenAt.get(awaited);
      if (since === undefined) firstSeenAt.set(awaited, now);
      else if (now - since >= timeoutMs) socket.destroy();
    }
  });
}

/** Calls `check` at an interval, with the time, until the server is closed. */
function repeatUntilClosed(server: Server, intervalMs: number, check: (now: number) => void): void {
  const timer = setInterval(() => check(performance.now()), intervalMs).unref();
  server.once('close', () => clearInterval(timer));
}

interface ConnectionBounds {
  /** Maximum open connections; 0 disables the bound. */
  maxConnections: number;
  /** Maximum open connections per IPv4 /24 or IPv6 /56; 0 disables the bound. */
  maxConnectionsPerNetwork: number;
}

interface BoundListener {
  /** Name in the log. */
  listener: string;
  /** Exempts trusted proxies from the bound per network, because their clients share one address. */
  isTrustedProxy: IsTrustedProxy;
  useOf: UseOf;
}

/**
 * Unused: no request received. Idle: all requests answered. Busy: a response is pending. Receiving: part of a
 * request received; closable, because nothing was executed and the client can try a different site.
 */
export type Use = 'unused' | 'idle' | 'receiving' | 'busy';

type UseOf = (socket: Socket) => Use;

/** Minimum idle time before closing (ms): the client of a request in transit cannot tell if it ran (RFC 9112 §9.5). */
const IDLE_GRACE_MS = 1000;

/** Sampling interval for idle times (ms); recording each request would slow down every hit. */
const SAMPLE_INTERVAL_MS = 500;

interface Connection {
  network: string;
  openedAt: number;
  bytesRead: number;
  bytesWritten: number;
  /** Latest possible use (ms); for an unused connection, its opening. */
  since: number;
  /** Whether part of a request arrived after the last response. */
  isReceiving: boolean;
}

export function boundConnections(
  server: Server,
  { maxConnections, maxConnectionsPerNetwork }: ConnectionBounds,
  context: Context,
  { listener, isTrustedProxy, useOf }: BoundListener,
): void {
  const reportDrop = createDropReport(context, listener, 'too many connections, closing new ones');
  const open = new Map<Socket, Connection>();
  const networks = createNetworkCount(maxConnectionsPerNetwork, isTrustedProxy);
  const idle = createIdleOrder(open, useOf);
  /** Connections above the bound, not yet handled. */
  const surplus: Socket[] = [];

  const forgetSocket = (socket: Socket): void => {
    const connection = open.get(socket);
    if (connection === undefined) return;
    open.delete(socket);
    networks.remove(connection.network);
  };
  const makeRoom = (_error: unknown, count: number): void => {
    let over = count - maxConnections;
    for (const arrived of surplus.splice(0)) {
      if (over <= 0) return;
      if (arrived.destroyed) continue;
      over--;
      const leastUseful = idle.next();
      if (leastUseful === undefined) reportDrop('total', open.get(arrived)?.network ?? '');
      else context.metrics.countIdleClosed();
      const closing = leastUseful ?? arrived;
      forgetSocket(closing);
      closing.destroy();
    }
  };
  server.on('connection', (socket: Socket) => {
    const network = networks.add(socket.remoteAddress);
    if (network === undefined) {
      socket.destroy();
      reportDrop('network', networkOf(socket.remoteAddress ?? ''));
      return;
    }
    const openedAt = performance.now();
    open.set(socket, {
      network,
      openedAt,
      // A plugin may have read what precedes the first request.
      bytesRead: socket.bytesRead,
      bytesWritten: 0,
      since: openedAt,
      isReceiving: false,
    });
    socket.once('close', () => forgetSocket(socket));
    if (maxConnections === 0 || open.size <= maxConnections) return;
    // Deferred until this turn's data has been read, because an unread request looks like an idle connection.
    // `open` still contains ended connections for a moment; the server's count excludes them.
    if (surplus.push(socket) === 1) setImmediate(() => server.getConnections(makeRoom));
  });
  if (maxConnections === 0) return;
  repeatUntilClosed(server, SAMPLE_INTERVAL_MS, (now) => {
    // Idle times matter only near the bound.
    if (2 * open.size > maxConnections) idle.sample(now);
  });
}

function createNetworkCount(maxPerNetwork: number, isTrustedProxy: IsTrustedProxy) {
  const counts = new Map<string, number>();
  return {
    /** Counts a connection and returns its network, or '' if it is exempt; undefined if the network is at its bound. */
    add(address: string | undefined): string | undefined {
      // A disconnected client has no address.
      if (maxPerNetwork === 0 || address === undefined || isTrustedProxy(address)) return '';
      const network = networkOf(address);
      const count = counts.get(network) ?? 0;
      if (count >= maxPerNetwork) return undefined;
      counts.set(network, count + 1);
      return network;
    },
    remove(network: string): void {
      const count = counts.get(network) ?? 0;
      if (count > 1) counts.set(network, count - 1);
      else counts.delete(network);
    },
  };
}

/** Selects the connection to close: unused ones first, then the least recently answered, then the longest receiving. */
function createIdleOrder(open: ReadonlyMap<Socket, Connection>, useOf: UseOf) {
  let sampledAt = 0;
  /** Closable connections, first to close last; computed lazily after each sample. */
  let sorted: Socket[] | undefined;

  function isClosable(socket: Socket, connection: Connection, use: Use): boolean {
    if (use === 'receiving') return sampledAt - connection.openedAt >= IDLE_GRACE_MS;
    if (use === 'busy' || connection.isReceiving) return false;
    return isSilent(socket, connection) && sampledAt - connection.since >= IDLE_GRACE_MS;
  }

  function sort(): Socket[] {
    const byUse: Record<Use, [Socket, Connection][]> = { unused: [], idle: [], receiving: [], busy: [] };
    for (const [socket, connection] of open) {
      const use = useOf(socket);
      if (isClosable(socket, connection, use)) byUse[use].push([socket, connection]);
    }
    const by = (time: 'since' | 'openedAt', list: [Socket, Connection][]): Socket[] =>
      list.sort(([, one], [, other]) => one[time] - other[time]).map(([socket]) => socket);
    const { unused, idle, receiving } = byUse;
    return [...by('since', unused), ...by('since', idle), ...by('openedAt', receiving)].reverse();
  }

  return {
    sample(now: number): void {
      sampledAt = now;
      sorted = undefined;
      for (const [socket, connection] of open)
        noteUse(socket, connection, { isBusy: useOf(socket) === 'busy', now });
    },
    next(): Socket | undefined {
      sorted ??= sort();
      for (let socket = sorted.pop(); socket !== undefined; socket = sorted.pop()) {
        const connection = open.get(socket);
        if (connection !== undefined && isClosable(socket, connection, useOf(socket))) return socket;
      }
      return undefined;
    },
  };
}

const isSilent = ({ bytesRead, bytesWritten }: Socket, connection: Connection): boolean =>
  bytesRead === connection.bytesRead && bytesWritten === connection.bytesWritten;

function noteUse(
  socket: Socket,
  connection: Connection,
  { isBusy, now }: { isBusy: boolean; now: number },
): void {
  if (!isBusy && isSilent(socket, connection)) return;
  const { bytesRead, bytesWritten } = socket;
  // A complete request causes a response, so new bytes without a response are part of a request.
  connection.isReceiving = !isBusy && bytesWritten === connection.bytesWritten;
  Object.assign(connection, { bytesRead, bytesWritten, since: now });
}

type DropReason = Parameters<Context['metrics']['countDroppedConnection']>[0];

const REMEDIES: Readonly<Record<DropReason, string>> = {
  total:
    'raise server.maxConnections, and the file limit (ulimit -n, LimitNOFILE= of systemd) where it is lower; native connections have at most 1,000',
  network: 'raise server.maxConnectionsPerNetwork, or name the proxy in front in http.trustedProxies',
  unread: 'add an instance, or bound the clients that read slowly with server.maxConnectionsPerNetwork',
};

export function createDropReport(
  { log, metrics, clock }: Context,
  listener: string,
  message: string,
): (reason: DropReason, network: string) => void {
  const warn = onceAMinute(clock, (dropped, reason: DropReason, network: string) =>
    log.warn({ listener, reason, network, dropped, remedy: REMEDIES[reason] }, message),
  );
  return function reportDrop(reason, network) {
    metrics.countDroppedConnection(reason);
    warn(reason, network);
  };
}

/** Maximum open connections: 16 feeds and 16 status pages, and as many for probes, metrics and calls. */
export const MAX_ADMIN_CONNECTIONS = 64;

/** At the bound, closes the oldest connection without a pending request, else the oldest: a new one may be a probe. */
export function boundAdminConnections(server: Server, { metrics }: Context, maxConnections: number): void {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    if (open.size >= maxConnections) {
      const leastUseful = leastUsefulOf(open);
      if (leastUseful !== undefined) open.delete(leastUseful);
      leastUseful?.destroy();
      metrics.countIdleClosed();
    }
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
}

function leastUsefulOf(open: ReadonlySet<Socket>): Socket | undefined {
  for (const socket of open) if (currentResponse(socket) === undefined) return socket;
  const [oldest] = open;
  return oldest;
}
