// HTTP servers on loopback that answer with JSON by path: resolvers and repositories for the example pages.
import { startHttpServer } from './http-server.js';

export interface JsonReply {
  status?: number;
  headers?: Record<string, string>;
  body: unknown;
}

/** Starts a server that ends with the test, and returns its URL. */
export const startJsonServer = (reply: (path: string) => JsonReply): Promise<string> =>
  startHttpServer((req, res) => {
    const [path = ''] = (req.url ?? '').split('?', 1);
    const { status = 200, headers, body } = reply(decodeURIComponent(path));
    res.writeHead(status, { 'Content-Type': 'application/json;charset=UTF-8', ...headers });
    res.end(JSON.stringify(body));
  });

/** Returns a Handle server's reply; `urls` maps each existing handle to its URL. */
export function recordReply(path: string, urls: Readonly<Record<string, string>>): JsonReply {
  const handle = path.slice('/api/handles/'.length);
  const value = urls[handle];
  if (value === undefined) return { status: 404, body: { responseCode: 100, handle } };
  const data = { format: 'string', value };
  const values = [{ index: 1, type: 'URL', data, ttl: 86_400, timestamp: '2026-11-21T09:00:00Z' }];
  return { body: { responseCode: 1, handle, values } };
}
