// Graceful shutdown of a server: accept nothing new, answer what has arrived, then close the connections.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { currentResponse, prependToRequests, trackConnections } from './connections.js';

/**
 * A request may be on its way over a connection that looks idle from here. Its response tells the client that no
 * other follows (RFC 9112 §9.6); only a connection that stays idle this long is closed without a response.
 */
const IDLE_GRACE_MS = 1000;

const CHECK_INTERVAL_MS = 50;

/** Resolves when every connection is closed; after `timeoutMs` the rest is cut off. */
export type Drain = (timeoutMs: number) => Promise<void>;

export function createDrain(server: Server): Drain {
  const open = trackConnections(server);
  return async function drain(timeoutMs) {
    prependToRequests(server, (_req: IncomingMessage, res) => {
      announceClose(res);
    });
    for (const socket of open) announceClose(currentResponse(socket));
    const closeIdle = createIdleCloser(open);
    // After the data of this turn has been read: a busy process would take an unread connection for an idle one.
    const closing = setInterval(() => setImmediate(closeIdle), CHECK_INTERVAL_MS);
    const cut = setTimeout(() => {
      server.closeAllConnections();
    }, timeoutMs);
    await closeListener(server);
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

async function closeListener(server: Server): Promise<void> {
  // The next turn accepts the connections that the kernel has taken already.
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise<void>((resolve) => {
    // `close` of an HTTP server would close idle connections at once; that of `net` does not
    // (test/unit/node-internals).
    NetServer.prototype.close.call(server, () => {
      resolve();
    });
  });
}
