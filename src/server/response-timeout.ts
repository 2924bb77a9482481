// Clients that take too long to read their answer: nothing else bounds who reads a little from time to time.
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { responseUnderWay } from './current-response.js';

/** A limit is kept about as precisely as this (ms), or as a quarter of it. */
const LOOK_EVERY_MS = 2000;

/** Looks at all connections from time to time, so that no single answer costs anything. */
export function cutSlowReaders(server: Server, answerTimeoutMs: number): void {
  const open = new Set<Socket>();
  const seenSince = new WeakMap<ServerResponse, number>();

  function look(): void {
    const now = performance.now();
    for (const socket of open) {
      const response = responseUnderWay(socket);
      if (response?.headersSent !== true) continue;
      const since = seenSince.get(response);
      if (since === undefined) seenSince.set(response, now);
      else if (now - since >= answerTimeoutMs) socket.destroy();
    }
  }

  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  const looking = setInterval(look, Math.min(LOOK_EVERY_MS, answerTimeoutMs / 4)).unref();
  server.once('close', () => {
    clearInterval(looking);
  });
}
