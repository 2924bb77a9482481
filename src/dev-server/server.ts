// The in-memory Handle server for tests and `npm run demo`: listeners and request handling.
import { once } from 'node:events';
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { writeJson } from '../handle/json.js';
import type { SiteJson } from '../handle/value-data.js';
import type { ValueReference } from '../handle/value.js';
import {
  containerError,
  type DemoReply,
  type DemoRequest,
  type SeenRequest,
  type WireReply,
  preflight,
  protocolReply,
  toWire,
} from './respond.js';
import { type DemoState, createRequestRouter } from './routes.js';
import { DEMO_PREFIXES, DEMO_SERVER_ADMINS, DEMO_SITE, demoRecords } from './seed.js';
import { type RecordInput, RecordStore, createRights } from './store.js';
import { type Random, SessionStore, systemRandom } from './login.js';

export interface DemoOptions {
  tls?: { key: string; cert: string };
  now?: () => number;
  random?: Random;
  /** Records by handle, including the prefix handle. */
  seed?: Readonly<Record<string, RecordInput>>;
  prefixes?: readonly string[];
  serverAdmins?: readonly ValueReference[];
  site?: SiteJson;
  /** Decides, when the head of a request has arrived, how its reply is sent: tests delay, hold and break replies. */
  treat?: (seen: SeenRequest) => SendReply;
}

type SendReply = (answer: () => WireReply, response: ServerResponse) => void;

export interface DemoServer {
  /** Opens a listener. Plain HTTP counts as secure for logins on loopback; the real server ignores them. */
  listen: (port: number, host?: string) => Promise<{ url: string }>;
  /** Opens an additional plain HTTP listener that ignores logins, like the real server. */
  listenInsecurely: (port: number, host?: string) => Promise<{ url: string }>;
  close: () => Promise<void>;
  store: RecordStore;
}

const sendReply: SendReply = (answer, response) => {
  const { status, headers, body } = answer();
  if (!response.destroyed) response.writeHead(status, headers.flat()).end(body);
};

/** Creates a server with its records. No listener is open yet. */
export function createDemoServer(options: DemoOptions = {}): DemoServer {
  const { now = Date.now, tls, treat = () => sendReply } = options;
  const state = createState({ ...options, now });
  const route = createRequestRouter(state);
  const listeners: Server[] = [];

  const handle = (secure: boolean) => (incoming: IncomingMessage, response: ServerResponse) => {
    const { method = '', url: target = '', headers } = incoming;
    const send = treat({ method, target, headers });
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const request: DemoRequest = { method, target, headers, body: Buffer.concat(chunks), secure };
      send(() => preflight(request) ?? toWire(route(request), request, state.sessions), response);
    });
  };

  const open = async (server: Server, port: number, host: string): Promise<string> => {
    server.on('clientError', answerBadRequest);
    listeners.push(server);
    await once(server.listen(port, host), 'listening');
    return `${host}:${(server.address() as AddressInfo).port}`;
  };

  return {
    store: state.store,
    listen: async (port: number, host = '127.0.0.1') => {
      const server = tls
        ? createTlsServer({ ...tls, ...SERVER_OPTIONS }, handle(true))
        : createServer(SERVER_OPTIONS, handle(true));
      return { url: `${tls ? 'https' : 'http'}://${await open(server, port, host)}` };
    },
    listenInsecurely: async (port: number, host = '127.0.0.1') => ({
      url: `http://${await open(createServer(SERVER_OPTIONS, handle(false)), port, host)}`,
    }),
    close: async () => {
      await Promise.all(listeners.splice(0).map(closeServer));
    },
  };
}

/** Accepts long request lines, so that the router can reject them like Jetty. The idle timeout is Jetty's. */
const SERVER_OPTIONS = { maxHeaderSize: 65_536, keepAliveTimeout: 30_000 };

function createState(options: DemoOptions & { now: () => number }): DemoState {
  const { now, random = systemRandom, prefixes = DEMO_PREFIXES, site = DEMO_SITE } = options;
  const store = new RecordStore({ prefixes, now });
  for (const [handle, values] of Object.entries(options.seed ?? demoRecords(now())))
    store.put(handle, values);
  return {
    store,
    now,
    site,
    sessions: new SessionStore({ now, random }),
    rights: createRights(store, options.serverAdmins ?? DEMO_SERVER_ADMINS),
    newSuffix: random.suffix,
  };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server.close(), 'close');
  server.closeAllConnections();
  await closed;
}

type ParseError = NodeJS.ErrnoException & { rawPacket?: Buffer };

/** Answers invalid HTTP, and distinguishes methods unknown to Node from invalid bytes. */
function answerBadRequest(error: ParseError, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const { status, json, html, charset } = refusalReply(error);
  const body = json === undefined ? (html ?? '') : writeJson(json);
  const type =
    json === undefined ? `text/html;charset=${charset ?? 'utf-8'}` : 'application/json;charset=utf-8';
  socket.end(
    `HTTP/1.1 ${status} Refused\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function refusalReply({ code, rawPacket }: ParseError): DemoReply {
  const method = /^[A-Z]+(?= )/.exec(rawPacket?.toString('latin1') ?? '')?.[0];
  if (code === 'HPE_INVALID_METHOD' && method) return protocolReply(501, `Unknown method ${method}`);
  if (code === 'HPE_HEADER_OVERFLOW') return containerError(431, 'Request Header Fields Too Large');
  return containerError(400, 'Bad Request');
}
