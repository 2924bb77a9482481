// Bounds the admin listener's open connections, so that it takes no files from the clients and the servers.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from '../context.js';
import { currentResponse } from './connections.js';

/** Maximum open connections: 16 feeds and 16 status pages, and as many for probes, metrics and calls. */
export const MAX_ADMIN_CONNECTIONS = 64;

/**
 * At the bound, closes the oldest connection without a pending request, or else the oldest. A new connection
 * is thus never refused, because it may be a probe.
 */
export function boundAdminConnections(server: Server, { metrics }: Pick<Context, 'metrics'>): void {
  /** Open connections, the oldest first. */
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    if (open.size >= MAX_ADMIN_CONNECTIONS) {
      const leastUseful = leastUsefulOf(open);
      if (leastUseful !== undefined) open.delete(leastUseful);
      leastUseful?.destroy();
      metrics.countIdleClosed();
    }
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
}

function leastUsefulOf(open: ReadonlySet<Socket>): Socket | undefined {
  for (const socket of open) if (currentResponse(socket) === undefined) return socket;
  const [oldest] = open;
  return oldest;
}
