// Graceful shutdown of a server: accepts nothing new, answers requests that have arrived, then closes the connections.
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket, isIPv6 } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { currentResponse, prependToRequests, trackConnections } from './connections.js';

/**
 * A request may be on its way over a connection that looks idle from here. Its response tells the client that no
 * other follows (RFC 9112 §9.6); only a connection that stays idle this long is closed without a response.
 */
const IDLE_GRACE_MS = 1000;

const CHECK_INTERVAL_MS = 50;

/** After this time without a new connection, all clients that reconnect after each response are held. */
const QUIET_MS = 20;

/** Maximum time for which steady new connections keep a listener with an empty queue open. */
const MAX_HOLD_MS = 2000;

/** Resolves when every connection is closed; after `timeoutMs` the rest is cut off. */
type Drain = (timeoutMs: number) => Promise<void>;

export function createDrain(server: Server): Drain {
  const open = trackConnections(server);
  return async function drain(timeoutMs) {
    const cutAt = performance.now() + timeoutMs;
    prependToRequests(server, (_req: IncomingMessage, res) => {
      announceClose(res);
    });
    for (const socket of open) announceClose(currentResponse(socket));
    const closeIdle = createIdleCloser(open);
    const close = (): void => {
      if (performance.now() < cutAt) closeIdle();
      else server.closeAllConnections();
    };
    // Deferred until the data of this turn has been read: a busy process would take an unread connection for an idle one.
    const closing = setInterval(() => setImmediate(close), CHECK_INTERVAL_MS);
    await closeListener(server, timeoutMs);
    clearInterval(closing);
  };
}

/** Drains a listener with one exchange per connection: connections that send nothing during the grace are closed. */
export function createExchangeDrain(server: NetServer): Drain {
  const open = trackConnections(server);
  return async function drain(timeoutMs) {
    const silent = new WeakSet<Socket>();
    const closing = setInterval(() => {
      for (const socket of open) {
        if (socket.bytesRead > 0) continue;
        if (silent.has(socket)) socket.destroy();
        silent.add(socket);
      }
    }, IDLE_GRACE_MS);
    const cut = setTimeout(() => {
      for (const socket of open) socket.destroy();
    }, timeoutMs);
    await closeListener(server, timeoutMs);
    clearInterval(closing);
    clearTimeout(cut);
  };
}

function announceClose(res: ServerResponse | undefined): void {
  if (res?.headersSent === false) res.setHeader('Connection', 'close');
}

/** Closes connections that have been idle for the grace. */
function createIdleCloser(open: ReadonlySet<Socket>): () => void {
  const idle = new WeakMap<Socket, { bytesRead: number; since: number }>();
  return function closeIdle() {
    const now = performance.now();
    for (const socket of open) {
      const { bytesRead } = socket;
      const known = idle.get(socket);
      if (currentResponse(socket) !== undefined) idle.delete(socket);
      else if (known?.bytesRead !== bytesRead) idle.set(socket, { bytesRead, since: now });
      else if (now - known.since >= IDLE_GRACE_MS) socket.destroy();
    }
  };
}

/**
 * Resolves when the last connection has ended.
 *
 * The kernel resets the connections that wait in the queue of a listener when it is closed, so that queue must be
 * empty. Clients that connect again after each response would keep it filled: connections that come from now on are
 * accepted, but not read before the listener is closed.
 */
async function closeListener(server: NetServer, timeoutMs: number): Promise<void> {
  const hold = holdConnections(server);
  await hold.quiet(timeoutMs);
  const closed = new Promise<void>((resolve) => {
    // `close` of an HTTP server would close idle connections immediately; `close` of `net` does not
    // (test/unit/node-internals).
    NetServer.prototype.close.call(server, () => {
      resolve();
    });
  });
  hold.release();
  await closed;
}

const ignore = (): void => undefined;

/** Keeps new connections from the server until they are released. */
function holdConnections(server: NetServer): {
  /** Resolves when no connection arrives or waits to be accepted: the listener can be closed now. */
  quiet: (timeoutMs: number) => Promise<void>;
  release: () => void;
} {
  const listeners = server.rawListeners('connection') as ((socket: Socket) => void)[];
  const held: Socket[] = [];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    // A held client may disconnect; without an error listener the process would end.
    socket.once('error', ignore);
    held.push(socket);
  });
  return {
    async quiet(timeoutMs) {
      const startedAt = performance.now();
      let seen;
      let heldForMs;
      do {
        seen = held.length;
        await pause(QUIET_MS);
        // One turn accepts the connections that the kernel already holds.
        await nextTurn();
        heldForMs = performance.now() - startedAt;
        // The queue is checked last: no other work comes between the check and the close of the listener.
      } while (
        heldForMs < timeoutMs &&
        ((held.length > seen && heldForMs < MAX_HOLD_MS) || waitingConnections(server) > 0)
      );
    },
    release() {
      server.removeAllListeners('connection');
      for (const listener of listeners) server.on('connection', listener);
      for (const socket of held) {
        socket.off('error', ignore);
        if (!socket.destroyed) server.emit('connection', socket);
      }
    },
  };
}

/**
 * Number of connections in the accept queue of this listener; 0 if the system does not show it. Looked up by inode, because
 * other listeners may have the same port: those of another instance (`server.reusePort`), or at another address.
 *
 * Reads synchronously, and only the listeners, which come first in the file: the listener can be closed microseconds
 * later.
 */
export function waitingConnections(server: NetServer): number {
  const inode = inodeOf(server);
  if (inode === undefined) return 0;
  const { address } = server.address() as AddressInfo;
  const lines = listenersOf(isIPv6(address) ? '/proc/self/net/tcp6' : '/proc/self/net/tcp');
  // proc(5): state 0A (LISTEN), tx_queue:rx_queue, tr:tm->when, retrnsmt, uid, timeout, inode. rx_queue is the accept queue.
  const line = new RegExp(` 0A [0-9A-F]{8}:([0-9A-F]{8}) \\S+ \\S+ +\\d+ +\\d+ ${inode} `);
  return parseInt(line.exec(lines)?.[1] ?? '0', 16);
}

/** Inode of the socket, from the descriptor in Node's handle. Undefined if there is none or the server is closed. */
function inodeOf(server: NetServer): number | undefined {
  const { fd = -1 } = (server as { _handle?: { fd?: number } | null })._handle ?? {};
  return fd < 0 ? undefined : fstatSync(fd).ino;
}

/** Long enough to contain the state of the last line, too short for that of the line before it. */
const LINE_LENGTH = 150;

/** The lines of /proc/self/net/tcp or tcp6 up to the first connection; empty on a system without the file. */
function listenersOf(path: string): string {
  if (!existsSync(path)) return '';
  const file = openSync(path, 'r');
  const page = Buffer.alloc(4096);
  let lines = '';
  let length: number;
  do {
    length = readSync(file, page);
    lines += page.toString('latin1', 0, length);
  } while (length > 0 && lines.slice(-LINE_LENGTH).includes(' 0A '));
  closeSync(file);
  return lines;
}
