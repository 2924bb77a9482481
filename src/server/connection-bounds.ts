// Bounds a listener's open connections, in total and per network. At the total
// bound, idle connections are closed.
import type { Server, Socket } from 'node:net';
import type { Context } from '../context.js';
import { type IsTrustedProxy, networkOf } from './client-address.js';

interface ConnectionBounds {
  /** Maximum open connections; 0 disables the bound. */
  maxConnections: number;
  /** Maximum open connections per IPv4 /24 or IPv6 /56; 0 disables the bound. */
  maxConnectionsPerNetwork: number;
}

interface ConnectionParts {
  /** Name in the log. */
  listener: string;
  /** Exempts trusted proxies from the bound per network, because their clients share one address. */
  isTrustedProxy: IsTrustedProxy;
  /** Returns the current use of a connection. */
  useOf: UseOf;
}

/**
 * Unused: no byte received. Idle: all requests answered. Busy: a response is pending. Receiving: part of a
 * request received; closable, because nothing was executed and the client can try a different site.
 */
export type Use = 'unused' | 'idle' | 'receiving' | 'busy';

type UseOf = (socket: Socket) => Use;

/**
 * Minimum idle time before closing (ms): the next request may be in transit, and the client could not tell
 * whether it was executed (RFC 9112 §9.5).
 */
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
  bounds: ConnectionBounds,
  context: Context,
  { listener, isTrustedProxy, useOf }: ConnectionParts,
): void {
  const { maxConnections, maxConnectionsPerNetwork } = bounds;
  const reportDrop = createDropReport(context, listener, 'too many connections, closing new ones');
  const open = new Map<Socket, Connection>();
  const networks = createNetworkCount(maxConnectionsPerNetwork, isTrustedProxy);
  const idle = createIdleOrder(open, useOf);
  /** Connections above the bound, not yet handled. */
  const surplus: Socket[] = [];

  const forget = (socket: Socket): void => {
    const connection = open.get(socket);
    if (connection === undefined) return;
    open.delete(socket);
    networks.remove(connection.network);
  };
  const close = (socket: Socket): void => {
    forget(socket);
    socket.destroy();
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
      close(leastUseful ?? arrived);
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
      bytesRead: 0,
      bytesWritten: 0,
      since: openedAt,
      isReceiving: false,
    });
    socket.once('close', () => {
      forget(socket);
    });
    if (maxConnections === 0 || open.size <= maxConnections) return;
    // Deferred until this turn's data has been read, because an unread request looks like an idle connection.
    // `open` still contains ended connections for a moment; the server's count excludes them.
    if (surplus.push(socket) === 1) setImmediate(() => server.getConnections(makeRoom));
  });
  // Idle times matter only near the bound.
  if (maxConnections > 0) sampleWhile(() => 2 * open.size > maxConnections, { server, idle });
}

function sampleWhile(
  isTight: () => boolean,
  { server, idle }: { server: Server; idle: ReturnType<typeof createIdleOrder> },
): void {
  const timer = setInterval(() => {
    if (isTight()) idle.sample(performance.now());
  }, SAMPLE_INTERVAL_MS).unref();
  server.once('close', () => {
    clearInterval(timer);
  });
}

function createNetworkCount(maxPerNetwork: number, isTrustedProxy: IsTrustedProxy) {
  const counts = new Map<string, number>();
  return {
    /**
     * Counts a connection and returns its network, or '' if it is exempt; undefined if
     * the network is at its bound.
     */
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

/**
 * Selects the connection to close: unused ones first, then the least recently
 * answered, then the longest receiving.
 */
function createIdleOrder(open: ReadonlyMap<Socket, Connection>, useOf: UseOf) {
  let sampledAt = 0;
  /** Closable connections, first to close last; computed lazily after each sample. */
  let sorted: Socket[] | undefined;

  function isClosable(socket: Socket, connection: Connection, use: Use): boolean {
    if (use === 'receiving') return sampledAt - connection.openedAt >= IDLE_GRACE_MS;
    if (use === 'busy' || connection.isReceiving) return false;
    return isUnchanged(socket, connection) && sampledAt - connection.since >= IDLE_GRACE_MS;
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
        note(socket, connection, { isBusy: useOf(socket) === 'busy', now });
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

const isUnchanged = ({ bytesRead, bytesWritten }: Socket, connection: Connection): boolean =>
  bytesRead === connection.bytesRead && bytesWritten === connection.bytesWritten;

function note(
  socket: Socket,
  connection: Connection,
  { isBusy, now }: { isBusy: boolean; now: number },
): void {
  if (!isBusy && isUnchanged(socket, connection)) return;
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
  unread: 'add an instance, or bound the clients that read slowly with traffic.rules',
};

/** Minimum interval between log lines, because thousands of connections may be closed. */
const LOG_INTERVAL_MS = 60_000;

/** Counts and logs connections closed at a bound. */
export function createDropReport(
  { log, metrics, clock: { now } }: Context,
  listener: string,
  message: string,
): (reason: DropReason, network: string) => void {
  let dropped = 0;
  let loggedAt = -Infinity;
  return function reportDrop(reason, network) {
    metrics.countDroppedConnection(reason);
    dropped++;
    if (now() - loggedAt < LOG_INTERVAL_MS) return;
    log.warn({ listener, reason, network, dropped, remedy: REMEDIES[reason] }, message);
    loggedAt = now();
    dropped = 0;
  };
}
