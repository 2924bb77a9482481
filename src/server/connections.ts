// The open connections of a server, the current response of each, and workarounds for Node.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** The set grows and shrinks with the connections of the server. */
export function trackConnections(server: NetServer): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return open;
}

/**
 * The current response of a connection. Node has no public name for it, but its default answer to a parse error reads
 * this field, too. test/unit/node-internals fails when that changes.
 */
export const currentResponse = (socket: Duplex): ServerResponse | undefined =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;

/** Calls `prepare` before the listeners of every request, which must have been added before. */
export function prependToRequests(
  server: Server,
  prepare: (req: IncomingMessage, res: ServerResponse) => void,
): void {
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    // Without a listener Node handles `Expect` itself.
    if (server.listenerCount(event) > 0) server.prependListener(event, prepare);
  }
}

/** Serves clients that have closed only their side (TCP half-close, as `nc -N` does); by default Node cuts them off. */
export function allowHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** Check interval of the response timeout (ms); a quarter of the timeout if that is shorter. */
const CHECK_INTERVAL_MS = 2000;

/** Closes connections whose client takes too long to read a response: Node's timeouts restart with each byte it reads. */
export function limitResponseTime(
  server: Server,
  { open, timeoutMs }: { open: ReadonlySet<Socket>; timeoutMs: number },
): void {
  const firstSeenAt = new WeakMap<ServerResponse, number>();

  // One timer for all connections, so that a response costs nothing.
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
