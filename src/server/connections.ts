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
 * The current response. Node has no public name for it and keeps it here; its own default answer to a parse error
 * reads it, too. test/unit/node-internals fails when that changes.
 */
export const currentResponse = (socket: Duplex): ServerResponse | undefined =>
  (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;

/** Calls `prepare` before the listeners of every request. Add those first. */
export function prependToRequests(
  server: Server,
  prepare: (req: IncomingMessage, res: ServerResponse) => void,
): void {
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    // Without a listener Node handles `Expect` itself.
    if (server.listenerCount(event) > 0) server.prependListener(event, prepare);
  }
}

/** A client that has closed its side only (TCP half-close, as `nc -N` does) still reads; by default Node cuts it off. */
export function allowHalfClosed(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** The precision of a response timeout (ms); of a short one a quarter. */
const CHECK_INTERVAL_MS = 2000;

/** Closes connections whose client takes too long to read a response: Node's timeouts end with each byte it takes. */
export function limitResponseTime(
  server: Server,
  { open, timeoutMs }: { open: ReadonlySet<Socket>; timeoutMs: number },
): void {
  const firstSeenAt = new WeakMap<ServerResponse, number>();

  // One timer for all connections: a response costs nothing.
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
