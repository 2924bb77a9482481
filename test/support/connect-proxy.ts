// A forward proxy whose tunnels and requests all go to loopback, so that tests can use host names that do not exist.
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { type AddressInfo, type Socket, connect } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Certificate } from './certificate.js';

export interface ConnectProxy {
  url: string;
  /** Hosts and ports of the tunnels, and the received logins. */
  tunnels: string[];
  /** Methods and absolute URLs of the requests without a tunnel. */
  requests: string[];
  logins: (string | undefined)[];
}

/** Starts the proxy. With a `status` other than 200 it refuses tunnels and requests; with 0 it never responds. */
export async function startConnectProxy(status = 200, tls?: Certificate): Promise<ConnectProxy> {
  const tunnels: string[] = [];
  const requests: string[] = [];
  const logins: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  const server = tls ? https.createServer(tls) : http.createServer();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => undefined)));
  server.on('connect', ({ url = '', headers }: http.IncomingMessage, client: Socket) => {
    tunnels.push(url);
    logins.push(headers['proxy-authorization']);
    client.on('error', () => undefined);
    if (status === 0) return;
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} No\r\nContent-Length: 2\r\n\r\nno`);
      return;
    }
    const far = connect(Number(url.slice(url.lastIndexOf(':') + 1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(far).pipe(client);
    });
    // As squid does.
    far.on('error', () => client.end('HTTP/1.1 503 No\r\n\r\n'));
    sockets.add(far.on('close', (hadError) => hadError || client.destroy()));
    client.on('close', () => far.destroy());
  });
  server.on('request', ({ method, url = '', headers }: http.IncomingMessage, res: http.ServerResponse) => {
    requests.push(`${method} ${url}`);
    logins.push(headers['proxy-authorization']);
    if (status === 0) return;
    if (status !== 200) {
      res.writeHead(status).end();
      return;
    }
    const { port, pathname } = new URL(url);
    const far = http.request({ host: '127.0.0.1', port, path: pathname, method, agent: false }, (from) => {
      res.writeHead(from.statusCode!, from.headers);
      from.pipe(res);
    });
    // As tinyproxy does.
    far.on('error', () => res.writeHead(500).end()).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`, tunnels, requests, logins };
}
