// Bounds the open connections of a listener, in total and by network. At the bound, idle connections make room.
import type { Server, Socket } from 'node:net';
import type { Context } from '../context.js';
import { type IsTrustedProxy, networkOf } from './client-address.js';

interface ConnectionBounds {
  /** Maximum open connections; 0 for no limit. */
  maxConnections: number;
  /** Maximum open connections per IPv4 /24 or IPv6 /56; 0 for no limit. */
  maxConnectionsPerNetwork: number;
}

interface ConnectionParts {
  listener: ListenerName;
  /** A trusted proxy has no bound per network, because all its clients share its address. */
  isTrustedProxy: IsTrustedProxy;
  /** The current use of a connection. */
  useOf: UseOf;
}

/**
 * Unused: no byte has arrived. Idle: every request is answered. Busy: a request is being answered. Receiving: a part of a
 * request has arrived; it may be closed, because it has changed nothing and the client tries another site.
 */
export type Use = 'unused' | 'idle' | 'receiving' | 'busy';

type UseOf = (socket: Socket) => Use;

/**
 * A connection that was in use a moment ago is not closed: its next request may be on its way, which the client could
 * not tell from a request that was carried out (RFC 9112 §9.5).
 */
const IDLE_GRACE_MS = 1000;

/** Resolution of idle times: connections are sampled, because noting each request would cost every hit. */
const SAMPLE_INTERVAL_MS = 500;

interface Connection {
  network: string;
  openedAt: number;
  bytesRead: number;
  bytesWritten: number;
  /** Latest time at which it can have been in use (ms); if unused, when it was opened. */
  since: number;
  /** Whether a part of a request has arrived after the last answer. */
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
  /** Connections above the bound that are not decided yet. */
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
    // Deferred until the data of this turn has been read: an unread request would look like an idle connection. Ended
    // connections stay in `open` a little longer, but not in the server's count.
    if (surplus.push(socket) === 1) setImmediate(() => server.getConnections(makeRoom));
  });
  // Idle times are needed only near the bound.
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
    /** Counts a connection. Returns its network, '' if it is not counted; undefined if the network is at its bound. */
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

/** Finds the connection to close: unused ones first, then the least recently answered, then the longest receiving. */
function createIdleOrder(open: ReadonlyMap<Socket, Connection>, useOf: UseOf) {
  let sampledAt = 0;
  /** Closable connections, the least useful last; computed lazily after each sample. */
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
  // Whole requests are being answered or have been, so bytes without an answer are a part of a request.
  connection.isReceiving = !isBusy && bytesWritten === connection.bytesWritten;
  Object.assign(connection, { bytesRead, bytesWritten, since: now });
}

/** Name of the listener in the log. */
export type ListenerName = 'http' | 'native-tcp';

type DropReason = Parameters<Context['metrics']['countDroppedConnection']>[0];

const REMEDIES: Readonly<Record<DropReason, string>> = {
  total:
    'raise maxConnections of this listener, and the file limit (ulimit -n, LimitNOFILE= of systemd) where it is lower',
  network:
    'raise maxConnectionsPerNetwork of this listener, or name the proxy in front in http.trustedProxies',
  unread: 'raise http.unsentMaxBytes',
};

/** Minimum interval between log lines, because thousands of connections may be dropped. */
const LOG_INTERVAL_MS = 60_000;

/** Counts and logs the connections that a listener closes to keep its bounds. */
export function createDropReport(
  { log, metrics, clock: { now } }: Context,
  listener: ListenerName,
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
