// The end of a listener: nothing new is taken, what was asked is answered, then connections are closed.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { responseUnderWay } from './current-response.js';

/**
 * A request may be on its way over a connection that looks idle from here. Its answer then tells the client
 * that no other follows (RFC 9112 §9.6); only a connection that stays idle for so long is closed without a word.
 */
const IDLE_GRACE_MS = 1000;

/** How often connections are looked at. */
const SWEEP_MS = 50;

/** What was seen of a connection, and since when (ms). */
interface Seen {
  bytesRead: number;
  since: number;
}

/** Makes the end of a server: resolves when every connection is closed; after `timeoutMs` the rest is cut off. */
export function createDrain(server: Server): (timeoutMs: number) => Promise<void> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return async (timeoutMs) => {
    for (const event of ['request', 'checkContinue', 'checkExpectation']) {
      // Node sees to `Expect` by itself where nobody listens for it.
      if (server.listenerCount(event) > 0) server.prependListener(event, announceInAnswer);
    }
    for (const socket of open) announceClose(responseUnderWay(socket));
    const sweep = createSweep(open);
    // After what has arrived in this turn: a connection is not idle because nobody had the time to read it.
    const sweeping = setInterval(() => setImmediate(sweep), SWEEP_MS);
    const cut = setTimeout(() => {
      server.closeAllConnections();
    }, timeoutMs);
    await closeListener(server);
    clearInterval(sweeping);
    clearTimeout(cut);
  };
}

function announceInAnswer(_req: IncomingMessage, res: ServerResponse): void {
  announceClose(res);
}

function announceClose(res: ServerResponse | undefined): void {
  if (res?.headersSent === false) res.setHeader('Connection', 'close');
}

/** Closes connections that have been idle for the grace. */
function createSweep(open: ReadonlySet<Socket>): () => void {
  const idle = new WeakMap<Socket, Seen>();
  return function sweep() {
    const now = performance.now();
    for (const socket of open) {
      const { bytesRead } = socket;
      const seen = idle.get(socket);
      if (responseUnderWay(socket) !== undefined) idle.delete(socket);
      else if (seen?.bytesRead !== bytesRead) idle.set(socket, { bytesRead, since: now });
      else if (now - seen.since >= IDLE_GRACE_MS) socket.destroy();
    }
  };
}

/** Node's own `close` of an HTTP server would close idle connections at once. */
async function closeListener(server: Server): Promise<void> {
  // Connections the kernel has taken already are ours: the next turn accepts them.
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise<void>((resolve) => {
    NetServer.prototype.close.call(server, () => {
      resolve();
    });
  });
}
