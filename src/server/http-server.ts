// Creates the HTTP servers for the public and admin listeners: Node's server with limits and workarounds.
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  createServer,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { TakeConnection } from '../hooks.js';
import { completeError } from '../http/error-reply.js';
import { NOSNIFF } from '../http/raw-response.js';
import type { MemoryBudget } from '../http/request-body.js';
import { answerParseError, readFraming, refuseConnect } from './bad-requests.js';
import type { IsTrustedProxy } from '../http/client-address.js';
import {
  MAX_ADMIN_CONNECTIONS,
  type Use,
  boundAdminConnections,
  boundConnections,
  currentResponse,
  limitResponseTime,
} from './connections.js';
import { boundUnreadBody } from './discard.js';
import { UnsentCount } from './unsent.js';

export interface ClientConnections {
  isTrustedProxy: IsTrustedProxy;
  unsent: MemoryBudget;
}

/** Node's check interval for slow requests (ms); Node's default is 30 s. */
const REQUEST_CHECK_INTERVAL_MS = 2000;

/** Header space in addition to the longest request line that gets a proper 414. */
const HEADER_BYTES = 16 * 1024;

const MAX_HEADER_FIELDS = 1000;

/** Time to relay an upstream response, or its timeout (ms). */
const RELAY_MS = 1000;

export function createHttpServer(
  listener: RequestListener,
  { server: limits, http, upstream, upstreams }: Config,
  context: Context,
  { isTrustedProxy, unsent }: ClientConnections,
): Server {
  const server = createServer({
    maxHeaderSize: 2 * http.maxRequestLineBytes + HEADER_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    // 0 would disable it, so that only the timeout of the server is left.
    keepAliveTimeout: Math.max(1, limits.keepAliveTimeoutMs),
    connectionsCheckingInterval: REQUEST_CHECK_INTERVAL_MS,
    requireHostHeader: false,
  });
  // A client waits without traffic for the longest write, and for its answer.
  const writesMs = [upstream, ...upstreams].map(
    ({ queueTimeoutMs, writeTimeoutMs }) => queueTimeoutMs + writeTimeoutMs + RELAY_MS,
  );
  server.setTimeout(Math.max(limits.idleTimeoutMs, ...writesMs));
  limitResponseTime(server, limits.responseTimeoutMs);
  boundConnections(server, limits, context, { listener: 'http', isTrustedProxy, useOf: httpUseOf });
  const count = new UnsentCount(unsent, context, 'http');
  function onWritten(this: ServerResponse): void {
    if (this.socket !== null) count.countWritten(this.socket, this);
  }
  handleInOrder(server, http.maxBodyBytes, (req, res) => {
    // `end` has written everything when it emits `prefinish` (test/unit/node-internals).
    res.on('prefinish', onWritten);
    listener(req, res);
  });
  server.on('clientError', answerParseError);
  passThrough(context.hooks.connection, server);
  return repair(server);
}

/** Lets each plugin take a connection before this server does. Call it after adding the listeners. */
function passThrough(plugins: readonly TakeConnection[], server: Server): void {
  if (plugins.length === 0) return;
  const listeners = server.rawListeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const accept = (): void => {
      for (const listener of listeners) listener.call(server, socket);
    };
    plugins.reduceRight<() => void>((serve, take) => () => take(socket, serve), accept)();
  });
}

export function createAdminServer(
  listener: RequestListener,
  context: Context,
  maxConnections = MAX_ADMIN_CONNECTIONS,
): Server {
  const server = createServer((req, res) => {
    if (!refuseHead(req, res)) listener(req, res);
  });
  boundAdminConnections(server, context, maxConnections);
  return repair(server);
}

/**
 * Returns a connection's use. Node creates the response as soon as the request headers have arrived. What a plugin has read
 * ahead of the first request is no use.
 */
function httpUseOf(socket: Socket): Use {
  if (currentResponse(socket) !== undefined) return 'busy';
  return socket.bytesWritten === 0 ? 'unused' : 'idle';
}

function handleInOrder(server: Server, maxBodyBytes: number, listener: RequestListener): void {
  const serialize = createSerializer();
  const afterEarlier =
    (act: (req: IncomingMessage, res: ServerResponse) => void) =>
    (req: IncomingMessage, res: ServerResponse): void =>
      serialize(req, res, () => {
        if (!refuseHead(req, res, maxBodyBytes)) act(req, res);
      });
  server.on('request', afterEarlier(listener));
  server.on(
    'checkContinue',
    // In order: a premature 100 Continue would count as the response to an earlier pipelined request (RFC 9112 §9.3.2).
    afterEarlier((req, res) => {
      res.writeContinue();
      listener(req, res);
    }),
  );
  server.on(
    'checkExpectation',
    // RFC 9110 §10.1.1 defines no expectation except 100-continue.
    afterEarlier((_req, res) => res.writeHead(417, NOSNIFF).end()),
  );
}

/** Applies workarounds for Node. Call it after adding the listeners. */
function repair(server: Server): Server {
  // Node silently drops fields beyond its limit; setting it one above our own limit reveals an excess.
  server.maxHeadersCount = MAX_HEADER_FIELDS + 1;
  // Serves half-closed clients (such as `nc -N`), which Node disconnects by default.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('connect', refuseConnect);
  return server;
}

/**
 * Rejects an invalid head and returns true; the connection is then closed and no further request is read.
 *
 * After a request with `Upgrade`, Node's parser stops and drops the rest of the packet, so the client would
 * match the next response to a dropped request. The connection therefore ends with this response, which makes
 * the client resend the rest (RFC 9112 §9.6).
 */
function refuseHead(req: IncomingMessage, res: ServerResponse, maxBodyBytes?: number): boolean {
  const { problem, asksForUpgrade, hasBody } = readFraming(req);
  if (hasBody) boundUnreadBody(req, res, maxBodyBytes);
  if (asksForUpgrade) res.shouldKeepAlive = false;
  const isTooLong = req.rawHeaders.length > 2 * MAX_HEADER_FIELDS;
  if (problem === undefined && !isTooLong) return false;
  const failure = isTooLong
    ? new ServiceError('HEADERS_TOO_LARGE', { detail: `at most ${MAX_HEADER_FIELDS} fields are read` })
    : new ServiceError('BAD_REQUEST', { detail: problem });
  const { status, headers, body } = completeError(failure);
  res.writeHead(status, { ...headers, Connection: 'close' }).end(body);
  return true;
}

/** Maximum queued requests per connection; at this number the socket is paused. */
const MAX_WAITING_PER_CONNECTION = 16;

/** Maximum queued requests over all connections: Node parses a whole packet, which may contain thousands. */
const MAX_WAITING = 20_000;

interface Queue {
  waiting: number;
}

/** Serialises a connection's requests: a GET after a PUT sees it (RFC 9112 §9.3.2), and a packet may hold thousands. */
function createSerializer() {
  const queues = new WeakMap<Socket, Queue>();
  let total = 0;

  function queueOf(socket: Socket): Queue {
    const known = queues.get(socket);
    if (known !== undefined) return known;
    const queue = { waiting: 0 };
    queues.set(socket, queue);
    // Node also resumes a connection itself, for example after reading a request to its end.
    socket.on('resume', () => {
      if (queue.waiting >= MAX_WAITING_PER_CONNECTION) socket.pause();
    });
    socket.once('close', () => {
      total -= queue.waiting;
      queue.waiting = 0;
    });
    return queue;
  }

  function enqueue(socket: Socket, queue: Queue): void {
    queue.waiting++;
    total++;
    if (total > MAX_WAITING) socket.destroy();
    else if (queue.waiting === MAX_WAITING_PER_CONNECTION) socket.pause();
  }

  function dequeue(socket: Socket, queue: Queue): void {
    queue.waiting--;
    total--;
    if (queue.waiting === MAX_WAITING_PER_CONNECTION - 1) socket.resume();
  }

  /** Calls `handle` immediately, or after all earlier responses have been sent. */
  return function serialize({ socket }: IncomingMessage, res: ServerResponse, handle: () => void): void {
    // No request is handled after the final response of a connection (RFC 9112 §9.6).
    if (!socket.writable) return;
    // Node assigns the socket to the first unfinished response.
    if (res.socket !== null) {
      handle();
      return;
    }
    const queue = queueOf(socket);
    enqueue(socket, queue);
    res.once('socket', () => {
      // Yields to requests on other connections.
      setImmediate(() => {
        if (socket.destroyed || socket.writableEnded) return;
        dequeue(socket, queue);
        handle();
      });
    });
  };
}
