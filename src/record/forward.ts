// Forwards a request to the upstream (http-proxy-middleware) and returns the open response.
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { ServiceError } from '../errors.js';
import { handleToPath, withoutSlashesAtEnd } from '../handle/handle.js';
import { type RequestContext, contextOf, requestIdOf } from '../http/context.js';
import { originForm } from '../http/target.js';
import { type IsTrustedProxy, peerOf } from '../server/client-address.js';
import { type ConcurrencyLimiter, type Preempt, callerKey } from '../upstream/concurrency-limiter.js';
import type { Sessions } from '../upstream/sessions.js';
import type { HandleServer } from '../upstream/upstreams.js';
import { codeOf, diagnose, isBeforeConnection } from '../upstream/failure.js';
import type { OriginRecord } from '../write/origin-record.js';
import { forwardedHeaders } from './forwarded-headers.js';

/**
 * Forwards the request with this path and query, and this body. `beforeSend` is called just before it is sent; what it
 * throws keeps the request from being sent. Rejects with a ServiceError.
 */
export type Forward = (
  req: Request,
  res: Response,
  content: {
    target: string;
    body: Buffer;
    /** Where the server is known: else it is that of the request. */
    origin?: Pick<OriginRecord, 'handle' | 'server'>;
    beforeSend?: (() => void) | undefined;
  },
) => Promise<IncomingMessage>;

/** The target upstream. A handle is encoded again, so that every URL parser on the way reads the same handle. */
export function upstreamTarget({ target, handle }: Pick<RequestContext, 'target' | 'handle'>): string {
  const path = handle === undefined ? target.path : `/api/handles/${handleToPath(handle.text)}`;
  return originForm({ path, query: target.query });
}

interface OutgoingRequest {
  method: string;
  target: string;
  headers: OutgoingHttpHeaders;
  body: Buffer;
}

interface ForwardCallbacks {
  onResponse: (response: IncomingMessage) => void;
  onFailure: (error: unknown) => void;
}

/**
 * The request as http-proxy sees it. It is not the client's: http-proxy would abort with a client that leaves,
 * although the upstream may act on what it was sent, and the handle would be invalidated before the write.
 */
class ForwardedRequest extends Readable {
  readonly method: string;
  readonly url: string;
  headers: OutgoingHttpHeaders = {};
  /** http-proxy reads it when the upstream resets the connection. */
  readonly socket = { destroyed: false };
  readonly callbacks: ForwardCallbacks;
  readonly #upstream: OutgoingRequest;

  constructor(upstream: OutgoingRequest, callbacks: ForwardCallbacks) {
    super({ read: () => undefined });
    this.method = upstream.method;
    this.url = upstream.target;
    this.callbacks = callbacks;
    this.#upstream = upstream;
  }

  /** To be called before http-proxy copies the headers: it has added a length to some. */
  replaceHeaders(): void {
    this.headers = this.#upstream.headers;
  }

  /** To be called when there is a connection: http-proxy pipes this body, and Node sends the head with its beginning. */
  sendBy(sent: ClientRequest): void {
    // http-proxy has folded slashes in it.
    sent.path = this.#upstream.target;
    this.push(this.#upstream.body);
    this.push(null);
  }

  /** Also while it waits for a connection: http-proxy aborts what it sends with its request. */
  cancel(): void {
    this.emit('aborted');
  }
}

export interface ForwardingHop {
  /** Our own name in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
  isTrustedProxy: IsTrustedProxy;
}

/** Where a body may name a session. */
const SESSIONS = /^\/api\/sessions(?:[/?]|$)/;

/** A server that is only read gets no credentials. */
export function createForwarder(
  server: Pick<HandleServer, 'url' | 'readOnly' | 'writeAgent' | 'writeTimeoutMs' | 'sessions'>,
  { pseudonym, isTrustedProxy }: ForwardingHop,
): Forward {
  const { url, readOnly, writeAgent: agent, writeTimeoutMs, sessions } = server;
  const { host, pathname } = new URL(url);
  const basePath = withoutSlashesAtEnd(pathname);
  const proxy = createProxyMiddleware<ForwardedRequest, Response>({
    target: url,
    agent,
    // http-proxy would parse and rewrite the target (backslashes become slashes).
    toProxy: true,
    // The response is held back until the handle is invalidated, and keeps its repeated headers.
    selfHandleResponse: true,
    on: {
      start: (request) => {
        request.replaceHeaders();
      },
      proxyReq: (sent, request) => {
        sent.once('close', () => {
          request.callbacks.onFailure(connectionClosed());
        });
        request.sendBy(sent);
      },
      // By its types a response is of the class of the request.
      proxyRes: (response, { callbacks }) => {
        receiveResponse(response as unknown as IncomingMessage, callbacks);
      },
      error: (error, { callbacks }) => {
        callbacks.onFailure(error);
      },
    },
  });

  return async function forward(req, res, { target, body: given }) {
    const { method } = req;
    const body = SESSIONS.test(target) ? sessions.bodyFor(given) : given;
    const client = {
      method,
      httpVersion: req.httpVersion,
      headers: { ...req.headers, authorization: sessions.loginFor(req.headers.authorization) },
      peer: peerOf(req, isTrustedProxy),
    };
    const ofRequest = { bodyBytes: body.length, requestId: requestIdOf(res) };
    const headers = forwardedHeaders(client, { host, pseudonym, withCredentials: !readOnly, ...ofRequest });
    return new Promise((resolve, reject) => {
      const onResponse = (response: IncomingMessage): void => {
        resolve(withChallenges(response, sessions));
      };
      const onFailure = (error: unknown): void => {
        clearTimeout(timer);
        reject(toForwardError(error));
      };
      const upstream = { method, target: basePath + target, headers, body };
      const request = new ForwardedRequest(upstream, { onResponse, onFailure });
      const timer = setTimeout(() => {
        onFailure(new ServiceError('UPSTREAM_TIMEOUT'));
        request.cancel();
      }, writeTimeoutMs);
      void proxy(request, res, onFailure);
    });
  };
}

function withChallenges(response: IncomingMessage, { challengeOf }: Sessions): IncomingMessage {
  const { rawHeaders } = response;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === 'www-authenticate') {
      rawHeaders[at + 1] = challengeOf(rawHeaders[at + 1] ?? '');
    }
  }
  return response;
}

function receiveResponse(response: IncomingMessage, callbacks: ForwardCallbacks): void {
  if (isFinalStatus(response.statusCode)) {
    callbacks.onResponse(response);
    return;
  }
  response.destroy();
  callbacks.onFailure(
    new ServiceError('UPSTREAM_BAD_ANSWER', { diagnosis: { cause: 'invalid status code' } }),
  );
}

/** RFC 9110 §15; Node accepts any three digits. */
const isFinalStatus = (status = 0): boolean => status >= 200 && status <= 599;

const connectionClosed = (): ServiceError =>
  new ServiceError('UPSTREAM_UNREACHABLE', {
    diagnosis: { cause: 'the connection was closed before a response came' },
  });

/** http-proxy hands on the error of the socket. */
function toForwardError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const reason = codeOf(error);
  const code = isBeforeConnection(reason ?? '') ? 'UPSTREAM_REFUSED' : 'UPSTREAM_UNREACHABLE';
  return new ServiceError(code, { diagnosis: diagnose(reason, error), cause: error });
}

/**
 * Forwards under a concurrency limit. A place is taken until the response has been read to its end, or until a request
 * waits for it while the client of this response does not read.
 */
export function createLimitedForward(
  forward: Forward,
  limiter: Pick<ConcurrencyLimiter, 'acquire' | 'allowPreemption'>,
): Forward {
  return async function limitedForward(req, res, content) {
    const { handle, caller } = contextOf(res);
    const named = content.origin?.handle ?? handle;
    const key = named && callerKey(named.key, req.headers.authorization);
    const release = await limiter.acquire({ key, caller });
    try {
      // Nothing has been sent, and http-proxy would not notice that the client has left.
      if (req.socket.destroyed) throw new ServiceError('BAD_REQUEST', { detail: 'the client has gone' });
      content.beforeSend?.();
      const response = await forward(req, res, content);
      const withdraw = limiter.allowPreemption(cutIfStalled(response, res));
      response.once('close', () => {
        withdraw();
        release();
      });
      return response;
    } catch (error) {
      release();
      throw error;
    }
  };
}

/** Cuts off a client that has taken nothing for this time; one that reads is never cut. */
function cutIfStalled(response: IncomingMessage, res: ServerResponse): Preempt {
  let movedAt = performance.now();
  res.on('drain', () => {
    movedAt = performance.now();
  });
  return (stalledMs) => {
    const isStalled = res.writableNeedDrain && performance.now() - movedAt >= stalledMs;
    if (isStalled) response.destroy();
    return isStalled;
  };
}
