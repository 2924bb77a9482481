// Graceful shutdown: stops accepting connections, responds to received requests, then closes the connections.
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Server, ServerResponse } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket, isIPv6 } from 'node:net';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { currentResponse, trackConnections } from './connections.js';

/**
 * Idle time before a connection is closed without a response (ms). An apparently idle connection may have a
 * request in transit, whose response tells the client that no further response follows (RFC 9112 §9.6).
 */
const IDLE_GRACE_MS = 1000;

const CHECK_INTERVAL_MS = 50;

/** Period without new connections (ms) after which all reconnecting clients are assumed to be held. */
const QUIET_MS = 20;

/** Maximum time for which new connections keep a listener open while its queue is empty (ms). */
const MAX_HOLD_MS = 2000;

/** Resolves when all connections are closed; closes the remaining ones after `timeoutMs`. */
type Drain = (timeoutMs: number) => Promise<void>;

export function createDrain(server: Server): Drain {
  const open = trackConnections(server);
  const drainSockets = createSocketDrain(server, open, (socket) => currentResponse(socket) !== undefined);
  return function drain(timeoutMs) {
    closeAfterResponses(server);
    for (const socket of open) announceClose(currentResponse(socket));
    return drainSockets(timeoutMs);
  };
}

/** Creates the drain for a listener with one exchange per connection, which starts with its first byte. */
export const createExchangeDrain = (server: NetServer): Drain =>
  createSocketDrain(server, trackConnections(server), ({ bytesRead }) => bytesRead > 0);

/** Creates a drain that closes connections which are not busy for the grace period. */
function createSocketDrain(
  server: NetServer,
  open: ReadonlySet<Socket>,
  isBusy: (socket: Socket) => boolean,
): Drain {
  return async function drainSockets(timeoutMs) {
    const cutAt = performance.now() + timeoutMs;
    const closeIdle = createIdleCloser(open, isBusy);
    const closeDue = (): void => {
      if (performance.now() < cutAt) closeIdle();
      // Also those that a plugin still holds back from the server.
      else for (const socket of open) socket.destroy();
    };
    // Deferred until this turn's data has been read: a busy process would treat an unread connection as idle.
    const closing = setInterval(() => setImmediate(closeDue), CHECK_INTERVAL_MS);
    await closeListener(server, timeoutMs);
    clearInterval(closing);
  };
}

/** Lets the response to every further request close its connection. The listeners must already be registered. */
function closeAfterResponses(server: Server): void {
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    // Without a listener, Node handles `Expect` itself.
    if (server.listenerCount(event) > 0)
      server.prependListener(event, (_req, res: ServerResponse) => announceClose(res));
  }
}

function announceClose(res: ServerResponse | undefined): void {
  if (res?.headersSent === false) res.setHeader('Connection', 'close');
}

function createIdleCloser(open: ReadonlySet<Socket>, isBusy: (socket: Socket) => boolean): () => void {
  const idle = new WeakMap<Socket, { bytesRead: number; since: number }>();
  return function closeIdle() {
    const now = performance.now();
    for (const socket of open) {
      const { bytesRead } = socket;
      const known = idle.get(socket);
      if (isBusy(socket)) idle.delete(socket);
      else if (known?.bytesRead !== bytesRead) idle.set(socket, { bytesRead, since: now });
      else if (now - known.since >= IDLE_GRACE_MS) socket.destroy();
    }
  };
}

/**
 * Closes the listener; resolves when the last connection has ended.
 *
 * On close, the kernel resets the connections in the accept queue, so the queue must be empty first. Clients
 * that reconnect after each response would keep it filled, so new connections are accepted, but not read
 * until the listener is closed.
 */
async function closeListener(server: NetServer, timeoutMs: number): Promise<void> {
  const hold = holdConnections(server);
  await hold.quiet(timeoutMs);
  const closed = new Promise<void>((resolve) => {
    // HTTP `close` would end idle connections immediately; the `net` version does not (test/unit/node-internals).
    NetServer.prototype.close.call(server, () => resolve());
  });
  hold.release();
  await closed;
}

const ignore = (): void => undefined;

function holdConnections(server: NetServer) {
  const listeners = server.rawListeners('connection') as ((socket: Socket) => void)[];
  const held: Socket[] = [];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    // A held client may disconnect; without an error listener, this would end the process.
    socket.once('error', ignore);
    held.push(socket);
  });
  return {
    /** Resolves when no connection arrives or waits in the accept queue, so that the listener can be closed. */
    async quiet(timeoutMs: number): Promise<void> {
      const startedAt = performance.now();
      let seen;
      let heldForMs;
      do {
        seen = held.length;
        await pause(QUIET_MS);
        // One event-loop turn accepts the connections already in the kernel.
        await nextTurn();
        heldForMs = performance.now() - startedAt;
        // Checks the queue last, so that no other work runs between this check and the close.
      } while (
        heldForMs < timeoutMs &&
        ((held.length > seen && heldForMs < MAX_HOLD_MS) || waitingConnections(server) > 0)
      );
    },
    release(): void {
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
 * Returns the length of this listener's accept queue; 0 if the system does not expose it. Matches by inode, because
 * listeners of other instances (`server.reusePort`), or at other addresses, may have the same port.
 *
 * Reads synchronously, and only the listener lines, which come first, so that the listener can close microseconds
 * later.
 */
export function waitingConnections(server: NetServer): number {
  const inode = inodeOf(server);
  if (inode === undefined) return 0;
  const { address } = server.address() as AddressInfo;
  const lines = listenersOf(isIPv6(address) ? '/proc/self/net/tcp6' : '/proc/self/net/tcp');
  for (const line of lines.split('\n')) {
    // proc(5): sl, local and remote address, state 0A (LISTEN), tx_queue:rx_queue, tr:tm->when, retrnsmt, uid,
    // timeout, inode. rx_queue is the accept queue.
    const [, , , state, queues, , , , , ofInode] = line.trim().split(/ +/);
    if (state === '0A' && ofInode === String(inode)) return parseInt(queues?.split(':')[1] ?? '0', 16);
  }
  return 0;
}

/** Returns the listening socket's inode, from Node's descriptor; undefined if the server is closed or has none. */
function inodeOf(server: NetServer): number | undefined {
  const { fd = -1 } = (server as { _handle?: { fd?: number } | null })._handle ?? {};
  return fd < 0 ? undefined : fstatSync(fd).ino;
}

/** Tail length (characters) that contains the last line's state, but not the previous line's. */
const LINE_LENGTH = 150;

/** Reads /proc/self/net/tcp or tcp6 up to the first connection; returns an empty string without the file. */
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
