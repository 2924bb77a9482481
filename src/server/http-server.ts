// The HTTP servers of the public and of the admin listener: Node's server with its limits and repairs.
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
import { completeError } from '../http/guard.js';
import type { MemoryBudget } from '../http/request-body.js';
import type { IsTrustedProxy } from './client-address.js';
import { allowHalfClosed, currentResponse, limitResponseTime, trackConnections } from './connections.js';
import { type Use, boundConnections } from './connection-bounds.js';
import { readFraming } from './framing.js';
import { answerParseError, refuseConnect } from './parse-error.js';
import { createSerializer } from './pipelining.js';
import { countUnsentResponses, createUnsentCount } from './unsent.js';

/** State that all listeners for clients share. */
export interface ClientConnections {
  /** Whether the other end of a connection is a trusted proxy. */
  isTrustedProxy: IsTrustedProxy;
  /** Memory budget of responses that clients have not read. */
  unsent: MemoryBudget;
}

/** The interval at which Node checks for slow requests (ms); 30 s by default. */
const REQUEST_CHECK_INTERVAL_MS = 2000;

/** Space for headers in addition to the longest request line that still gets a proper 414. */
const HEADER_BYTES = 16 * 1024;

const MAX_HEADER_FIELDS = 1000;

/** The server of the public listener. */
export function createHttpServer(
  listener: RequestListener,
  { server: limits, http }: Pick<Config, 'server' | 'http'>,
  context: Context,
  { isTrustedProxy, unsent }: ClientConnections,
): Server {
  const server = createServer({
    maxHeaderSize: 2 * http.maxRequestLineBytes + HEADER_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: REQUEST_CHECK_INTERVAL_MS,
    requireHostHeader: false,
  });
  server.setTimeout(limits.idleTimeoutMs);
  if (limits.answerTimeoutMs > 0) {
    limitResponseTime(server, { open: trackConnections(server), timeoutMs: limits.answerTimeoutMs });
  }
  boundConnections(server, limits, context, { listener: 'http', isTrustedProxy, useOf });
  const countUnsent = countUnsentResponses(createUnsentCount(unsent, context, 'http'));
  handleInOrder(server, (req, res) => {
    listener(req, res);
    countUnsent(res);
  });
  server.on('clientError', answerParseError);
  return repair(server);
}

/** The server of the admin listener. */
export function createAdminServer(listener: RequestListener): Server {
  const server = createServer((req, res) => {
    if (!refuseHead(req, res)) listener(req, res);
  });
  return repair(server);
}

/** Node creates the response as soon as the headers of the request have arrived. */
function useOf(socket: Socket): Use {
  if (currentResponse(socket) !== undefined) return 'busy';
  return socket.bytesRead === 0 ? 'unused' : 'idle';
}

function handleInOrder(server: Server, listener: RequestListener): void {
  const serialize = createSerializer();
  server.on('request', (req: IncomingMessage, res: ServerResponse) => {
    serialize(req, res, () => {
      if (!refuseHead(req, res)) listener(req, res);
    });
  });
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    // Not earlier: the client would match 100 Continue to the previous response (RFC 9110 §10.1.1).
    serialize(req, res, () => {
      if (refuseHead(req, res)) return;
      res.writeContinue();
      listener(req, res);
    });
  });
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    // No other expectation is defined (RFC 9110 §10.1.1).
    serialize(req, res, () => {
      if (!refuseHead(req, res)) res.writeHead(417).end();
    });
  });
}

/** Applies workarounds for Node. Call it after the listeners have been added. */
function repair(server: Server): Server {
  // Node silently drops fields beyond its limit. A limit one above ours shows that there were too many.
  server.maxHeadersCount = MAX_HEADER_FIELDS + 1;
  allowHalfClosed(server);
  server.on('connect', refuseConnect);
  return server;
}

/**
 * Returns true if it has refused the request. The connection is then closed, and further requests on it are not read.
 *
 * After a request with `Upgrade` Node's parser stops and drops the rest of the packet: the client would match the next
 * response to a dropped request. So its response is the last of its connection, which makes the client send the rest again
 * (RFC 9112 §9.6).
 */
function refuseHead(req: IncomingMessage, res: ServerResponse): boolean {
  const { problem, asksForUpgrade } = readFraming(req);
  if (asksForUpgrade) res.shouldKeepAlive = false;
  const isTooLong = req.rawHeaders.length > 2 * MAX_HEADER_FIELDS;
  if (problem === undefined && !isTooLong) return false;
  const failure = isTooLong
    ? new ServiceError('HEADERS_TOO_LARGE', { detail: `at most ${MAX_HEADER_FIELDS} fields are read` })
    : new ServiceError('BAD_REQUEST', { ...(problem !== undefined && { detail: problem }) });
  const { status, headers, body } = completeError(failure);
  res.writeHead(status, { ...headers, Connection: 'close' }).end(body);
  return true;
}
