// The public listener: Node's server with limits against slow and oversized requests.
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  createServer,
} from 'node:http';
import { answerClientError } from './parse-error.js';
import { keepAnswers } from './connection.js';
import { limitHeaderFields, refuseHeaderFlood } from './header-limit.js';
import { createInTurn } from './pipelining.js';
import { cutSlowReaders } from './response-timeout.js';

/** Times in ms. */
export interface ServerLimits {
  maxRequestLineBytes: number;
  /** 0: no limit. */
  maxConnections: number;
  headersTimeout: number;
  requestTimeout: number;
  keepAliveTimeout: number;
  /** For a connection on which nothing moves, with a request under way or not; 0: no limit. */
  idleTimeout: number;
  /** For one answer to be read; 0: no limit. */
  answerTimeout: number;
  /** A connection was closed at once: there are too many. */
  onDropped?: () => void;
}

/** How often Node looks for requests that take too long (ms); 30 s by default. */
const LOOK_EVERY_MS = 2000;

/** Room for headers beside the longest request line that is still answered with a proper 414. */
const HEADER_BYTES = 16 * 1024;

export function createHttpServer(listener: RequestListener, limits: ServerLimits): Server {
  const { headersTimeout, requestTimeout, keepAliveTimeout } = limits;
  const server = createServer({
    maxHeaderSize: 2 * limits.maxRequestLineBytes + HEADER_BYTES,
    headersTimeout,
    requestTimeout,
    keepAliveTimeout,
    connectionsCheckingInterval: LOOK_EVERY_MS,
    requireHostHeader: false,
  });
  server.setTimeout(limits.idleTimeout);
  limitHeaderFields(server);
  if (limits.answerTimeout > 0) cutSlowReaders(server, limits.answerTimeout);
  if (limits.maxConnections > 0) server.maxConnections = limits.maxConnections;
  server.on('drop', () => limits.onDropped?.());
  const inTurn = createInTurn();
  server.on('request', (req, res) => {
    inTurn(req, res, () => {
      if (!refuseHeaderFlood(req, res)) listener(req, res);
    });
  });
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    // Not before: whoever reads it behind the head of another answer takes the one for the other (RFC 9110 §10.1.1).
    inTurn(req, res, () => {
      if (refuseHeaderFlood(req, res)) return;
      res.writeContinue();
      listener(req, res);
    });
  });
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    // There is no other expectation (RFC 9110 §10.1.1).
    inTurn(req, res, () => {
      if (!refuseHeaderFlood(req, res)) res.writeHead(417).end();
    });
  });
  server.on('clientError', answerClientError);
  keepAnswers(server);
  return server;
}
