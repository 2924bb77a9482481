// Sends a request on to the upstream as it is (http-proxy-middleware) and gives back the open answer.
import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { ServiceError } from '../errors.js';
import { isBeforeConnection } from '../upstream/failure.js';

/** Headers that speak about one connection only (RFC 9110 §7.6.1). `Expect` is answered by us. */
export const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface ForwarderDeps {
  upstreamUrl: string;
  agent: Agent;
  timeoutMs: number;
  /** Our own name in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
}

export interface Sending {
  /** Path and query. */
  target: string;
  /** The body as it came, read already. */
  body: Buffer;
}

/** Sends the request upstream. Rejects with a ServiceError. */
export type Forward = (req: Request, res: Response, sending: Sending) => Promise<IncomingMessage>;

/** A request on its way to the upstream. */
interface Waiting extends Sending {
  isChunked: boolean;
  answered: (answer: IncomingMessage) => void;
  failed: (error: unknown) => void;
  /** Takes the request back, also while it waits for a connection. */
  giveUp: () => void;
}

export function createForwarder(deps: ForwarderDeps): Forward {
  const waiting = new WeakMap<IncomingMessage, Waiting>();
  const proxy = createProxyMiddleware<Request, Response>({
    target: deps.upstreamUrl,
    agent: deps.agent,
    changeOrigin: true,
    xfwd: true,
    // The raw target is sent; http-proxy would parse and rewrite it (backslashes become slashes).
    toProxy: true,
    pathRewrite: (path, req) => waiting.get(req)?.target ?? path,
    // The answer is held back until the handle is forgotten, and keeps its doubled headers.
    selfHandleResponse: true,
    on: {
      start: (req) => {
        const request = waiting.get(req);
        if (request) prepareToSend(req, request);
      },
      proxyReq: (proxyReq, req) => {
        proxyReq.once('close', () => waiting.get(req)?.failed(brokenOff()));
      },
      proxyRes: (answer, req) => {
        const request = waiting.get(req);
        if (isStatus(answer.statusCode)) request?.answered(answer);
        else {
          answer.destroy();
          request?.failed(
            new ServiceError('UPSTREAM_BAD_ANSWER', { detail: 'its status is none that HTTP knows' }),
          );
        }
      },
      error: (error, req) => waiting.get(req)?.failed(error),
    },
  });

  return async function forward(req, res, sending) {
    dropConnectionHeaders(req);
    addVia(req, deps.pseudonym);
    return new Promise((answered, reject) => {
      const failed = (error: unknown): void => {
        clearTimeout(limit);
        reject(asServiceError(error));
      };
      const isChunked = req.headers['transfer-encoding'] !== undefined;
      const request: Waiting = { ...sending, isChunked, answered, failed, giveUp: () => undefined };
      const limit = setTimeout(() => {
        failed(new ServiceError('UPSTREAM_TIMEOUT'));
        request.giveUp();
      }, deps.timeoutMs);
      waiting.set(req, request);
      void proxy(req, res, failed);
    });
  };
}

/**
 * Called when http-proxy has read the headers and before it sends anything. The request itself may
 * get its connection much later: every one may be busy, or its certificate has yet to be checked.
 */
function prepareToSend(req: Request, request: Waiting): void {
  if (request.isChunked) {
    // http-proxy takes a DELETE without a length for one without a body. What it sends all the same,
    // the upstream would read as the next request.
    delete req.headers['content-length'];
    req.headers['transfer-encoding'] = 'chunked';
  }
  // http-proxy pipes the request, whose body has been read: this is the one call it makes.
  req.pipe = (proxyReq) => {
    request.giveUp = () => (proxyReq as unknown as ClientRequest).destroy();
    // The upstream may act on it from now on. A client that leaves must not take the answer along:
    // http-proxy would abort, and the handle would be forgotten before the write.
    req.removeAllListeners('aborted');
    req.removeAllListeners('error');
    req.on('error', () => undefined);
    proxyReq.end(request.body);
    return proxyReq;
  };
}

/** Of a final answer (RFC 9110 §15); Node takes any three digits. */
const isStatus = (status = 0): boolean => status >= 200 && status <= 599;

const brokenOff = (): ServiceError =>
  new ServiceError('UPSTREAM_UNREACHABLE', { detail: 'the connection was closed before an answer came' });

function addVia({ headers, httpVersion }: Request, pseudonym: string): void {
  const ours = `${httpVersion} ${pseudonym}`;
  headers.via = headers.via === undefined ? ours : `${headers.via}, ${ours}`;
}

function dropConnectionHeaders(req: Request): void {
  const named = (req.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  for (const name of [...HOP_BY_HOP, ...named, 'expect']) {
    if (name !== 'transfer-encoding') Reflect.deleteProperty(req.headers, name);
  }
}

/** http-proxy hands on the error of the socket; its text names addresses, so only the code is told. */
function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  if (isBeforeConnection(code)) return new ServiceError('UPSTREAM_REFUSED', { detail: code, cause: error });
  return new ServiceError('UPSTREAM_UNREACHABLE', { detail: code, cause: error });
}
