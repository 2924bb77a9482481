// TCP servers on loopback that misbehave in the middle of an HTTP response.
import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts a server that calls `answer` once a request has begun. Returns its URL. */
export async function startHostileServer(answer: (socket: Socket, request: string) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).resume();
    socket.once('data', (bytes) => {
      answer(socket, bytes.toString('latin1'));
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Writes for as long as the client reads. */
export function writeForEver(socket: Socket, piece: string | Buffer): void {
  const write = (): void => {
    while (!socket.destroyed && socket.write(piece));
    socket.once('drain', write);
  };
  write();
}

/** Writes a space from time to time, for as long as the client is connected. */
export function writeSlowly(socket: Socket): void {
  const timer = setInterval(() => socket.write(' '), 5);
  socket.once('close', () => {
    clearInterval(timer);
  });
}
