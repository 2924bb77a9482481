// Measures the limit of node:http and undici for misses: `node relay.js PORT UPSTREAM_URL` forwards every
// request without parsing, checks or timeouts.
import { type ServerResponse, createServer } from 'node:http';
import { type Dispatcher, Pool } from 'undici';

const [port = '0', upstreamUrl = ''] = process.argv.slice(2);
const { origin } = new URL(upstreamUrl);
/** Uses the proxy's concurrency (`upstream.concurrency`). */
const pool = new Pool(origin, { connections: 64 });

function sendTo(res: ServerResponse): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = [];
  let status = 0;
  return {
    onRequestStart: () => undefined,
    onResponseStart(_controller, statusCode) {
      status = statusCode;
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk);
    },
    onResponseEnd() {
      const body = Buffer.concat(chunks);
      const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];
      res.writeHead(status, headers).end(body);
    },
    onResponseError() {
      res.destroy();
    },
  };
}

const server = createServer(({ url: path = '' }, res) => {
  pool.dispatch({ origin, method: 'GET', path, headers: ['Accept', 'application/json'] }, sendTo(res));
});
server.keepAliveTimeout = 65_000;
server.listen(Number(port), '127.0.0.1');
