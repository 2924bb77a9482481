// Bounds the open connections of a listener, in all and by network. When all are taken, idle ones make room.
import type { Server, Socket } from 'node:net';
import type { Context } from '../context.js';
import { type IsTrustedProxy, networkOf } from './client-address.js';

interface ConnectionBounds {
  /** 0: no limit. */
  maxConnections: number;
  /** Of one IPv4 /24 or IPv6 /56; 0: no limit. */
  maxConnectionsPerNetwork: number;
}

interface ConnectionParts {
  listener: ListenerName;
  /** All clients come from the address of such a proxy: it has no bound of its own. */
  isTrustedProxy: IsTrustedProxy;
  /** What a connection shows at this moment. */
  useOf: UseOf;
}

/**
 * Unused: no byte has arrived. Idle: every request is answered. Busy: a request is being answered. Receiving: a part of a
 * request has arrived; it may be cut, because it has changed nothing and the client asks another site.
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
  /** At most when it was last in use (ms); when it was opened, if it never was. */
  since: number;
  /** A part of a request has come behind the last answer. */
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
  /** Above the bound, not yet decided. */
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
    // After the data of this turn has been read: an unread request would look like an idle connection. Connections that
    // have ended are in `open` for a while yet, but not in the server's count.
    if (surplus.push(socket) === 1) setImmediate(() => server.getConnections(makeRoom));
  });
  // Idle times are needed near the bound only.
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

function createNetworkCount(mostOfNetwork: number, isTrustedProxy: IsTrustedProxy) {
  const counts = new Map<string, number>();
  return {
    /** The network of the address, empty for one that is not counted; undefined when it has no place left. */
    add(address: string | undefined): string | undefined {
      // A client that has left has no address any more.
      if (mostOfNetwork === 0 || address === undefined || isTrustedProxy(address)) return '';
      const network = networkOf(address);
      const count = counts.get(network) ?? 0;
      if (count >= mostOfNetwork) return undefined;
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
  /** By use, the least useful last; undefined until somebody asks. */
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
  // Every whole request is being answered or has been.
  connection.isReceiving = !isBusy && bytesWritten === connection.bytesWritten;
  Object.assign(connection, { bytesRead, bytesWritten, since: now });
}

/** The listener, as it is named in the log. */
export type ListenerName = 'http' | 'native-tcp';

type DropReason = Parameters<Context['metrics']['countDroppedConnection']>[0];

const REMEDIES: Readonly<Record<DropReason, string>> = {
  total:
    'raise maxConnections of this listener, and the file limit (ulimit -n, LimitNOFILE= of systemd) where it is lower',
  network:
    'raise maxConnectionsPerNetwork of this listener, or name the proxy in front in http.trustedProxies',
  unread: 'raise http.maxUnsentResponseBytes',
};

/** Connections may be dropped by the thousand. */
const LOG_INTERVAL_MS = 60_000;

/** Counts and logs the connections that a listener closes, in its bounds, to protect the others. */
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
