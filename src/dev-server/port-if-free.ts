// Chooses the default ports for the demo, or free ports if a different program uses the default ports.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** Returns the port, or 0, which selects any free port, if the port is in use. */
export async function portIfFree(protocol: 'tcp' | 'udp', host: string, port: number): Promise<string> {
  const isFree = await (protocol === 'tcp' ? canListen(host, port) : canBind(host, port));
  return String(isFree ? port : 0);
}

const canListen = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen({ host, port, exclusive: true }, () =>
      server.close(() => {
        resolve(true);
      }),
    );
  });

const canBind = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.once('error', () => {
      resolve(false);
    });
    socket.bind({ address: host, port, exclusive: true }, () =>
      socket.close(() => {
        resolve(true);
      }),
    );
  });
