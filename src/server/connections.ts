// Tracks open connections and their current responses; contains workarounds for Node.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Returns a live set of the server's open connections. */
export function trackConnections(server: NetServer): ReadonlySet<Socket> {
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

/** Calls `prepare` for every request, before its listeners, which must already be registered. */
export function prependToRequests(
  server: Server,
  prepare: (req: IncomingMessage, res: ServerResponse) => void,
): void {
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    // Without a listener, Node handles `Expect` itself.
    if (server.listenerCount(event) > 0) server.prependListener(event, prepare);
  }
}

/** Serves half-closed clients (such as `nc -N`), which Node disconnects by default. */
export function allowHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** Maximum check interval of the response timeout (ms); shorter timeouts use a quarter of their value. */
const CHECK_INTERVAL_MS = 2000;

/**
 * Closes connections whose client takes too long to read a response; Node's
 * timeouts restart with every byte read.
 */
export function limitResponseTime(
  server: Server,
  { open, timeoutMs }: { open: ReadonlySet<Socket>; timeoutMs: number },
): void {
  const firstSeenAt = new WeakMap<ServerResponse, number>();

  // A single timer for all connections adds no cost to a response.
  const timer = setInterval(
    () => {
      const now = performance.now();
      for (const socket of open) {
        const response = currentResponse(socket);
        if (response?.headersSent !== true) continue;
        const since = firstSeenAt.get(response);
        if (since === undefined) firstSeenAt.set(response, now);
        else if (now - since >= timeoutMs) socket.destroy();
      }
    },
    Math.min(CHECK_INTERVAL_MS, timeoutMs / 4),
  ).unref();
  server.once('close', () => {
    clearInterval(timer);
  });
}
