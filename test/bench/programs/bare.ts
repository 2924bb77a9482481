// Measures the limit of node:http: `node bare.js PORT PROXY_URL` serves responses from a Map. Copies each
// response from the proxy once, so that headers and bodies are identical.
import { Agent, type ServerResponse, createServer, get } from 'node:http';

const [port = '0', proxyUrl = ''] = process.argv.slice(2);

interface Copy {
  status: number;
  headers: string[];
  body: string;
}

const copies = new Map<string, Copy>();
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
/** Headers that Node sets itself. */
const OF_THE_CONNECTION = new Set(['date', 'connection', 'keep-alive']);

const server = createServer((req, res) => {
  const known = copies.get(req.url ?? '');
  if (known === undefined) copyFromProxy(req.url ?? '', res);
  else res.writeHead(known.status, known.headers).end(known.body, 'latin1');
});
server.keepAliveTimeout = 65_000;
server.listen(Number(port), '127.0.0.1');

function copyFromProxy(target: string, res: ServerResponse): void {
  get(proxyUrl + target, { agent }, (answer) => {
    let body = '';
    answer.setEncoding('latin1').on('data', (text: string) => (body += text));
    answer.on('end', () => {
      const { statusCode: status = 500, rawHeaders } = answer;
      const copy = { status, headers: ownHeaders(rawHeaders), body };
      if (status < 400) copies.set(target, copy);
      res.writeHead(status, copy.headers).end(body, 'latin1');
    });
  }).on('error', () => res.destroy());
}

function ownHeaders(raw: readonly string[]): string[] {
  const own: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const [name = '', value = ''] = raw.slice(at, at + 2);
    if (!OF_THE_CONNECTION.has(name.toLowerCase())) own.push(name, value);
  }
  return own;
}
