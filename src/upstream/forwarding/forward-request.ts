// Forwards a request to the upstream (http-proxy-middleware), and returns the response with its body still unread.
import type { Agent, ClientRequest, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { ServiceError } from '../../errors.js';
import { type ConcurrencyLimiter, type Preempt, callerKey } from '../concurrency-limiter.js';
import type { ForwardRequest, ServerSettings } from '../contract.js';
import { afterHalves, parseAddress } from '../exchange.js';
import { codeOf, diagnose, isBeforeRequest } from '../failure.js';
import { endToEndLines, forwardedHeaders } from './forwarded-headers.js';
import type { Sessions } from '../sessions.js';

interface OutgoingRequest {
  method: string;
  target: string;
  headers: OutgoingHttpHeaders;
  body: Buffer;
}

interface ForwardCallbacks {
  onResponse: (response: IncomingMessage) => void;
  onFailure: (error: unknown) => void;
  onClose: () => void;
}

/**
 * The request passed to http-proxy in place of the client's. Otherwise http-proxy would abort when the client
 * disconnects, and the handle would be invalidated while the upstream may still execute the write.
 */
class ForwardedRequest extends Readable {
  readonly method: string;
  readonly url: string;
  /** Read by http-proxy after a connection reset by the upstream. */
  readonly socket = { destroyed: false };

  constructor(
    private readonly upstream: OutgoingRequest,
    readonly callbacks: ForwardCallbacks,
  ) {
    super({ read: () => undefined });
    this.method = upstream.method;
    this.url = upstream.target;
  }

  /** Always a copy, because http-proxy adds Content-Length to some requests before it copies the headers. */
  get headers(): OutgoingHttpHeaders {
    return { ...this.upstream.headers };
  }

  /** Sends the body, once `sent` has a socket: http-proxy pipes it, and Node sends the head with the first bytes. */
  sendBy(sent: ClientRequest): void {
    // http-proxy has merged repeated slashes in the path, so the original target is restored.
    sent.path = this.upstream.target;
    this.push(this.upstream.body);
    this.push(null);
  }
}

/** Creates the forwarder of a server. A read-only server receives no credentials. `pseudonym`: this proxy's name in `Via`. */
export function createForwardRequest(
  { url, readOnly, writeTimeoutMs }: Pick<ServerSettings, 'url' | 'readOnly' | 'writeTimeoutMs'>,
  { pseudonym, writeAgent, sessions }: { pseudonym: string; writeAgent: Agent; sessions: Sessions },
): ForwardRequest {
  const { host } = new URL(url);
  const { basePath } = parseAddress(url);
  const proxy = createProxy(url, writeAgent);

  return async function forward(req, res, { target, body: given, isOfSessions, peer, requestId }) {
    const { method = 'GET', httpVersion } = req;
    const body = isOfSessions === true ? sessions.bodyFor(given) : given;
    const authorization = sessions.loginFor(req.headers.authorization);
    const client = { method, httpVersion, headers: { ...req.headers, authorization }, peer };
    const ofRequest = { bodyBytes: body.length, requestId };
    const headers = forwardedHeaders(client, { host, pseudonym, withCredentials: !readOnly, ...ofRequest });
    return new Promise((resolve, reject) => {
      let received: IncomingMessage | undefined;
      const onFailure = (error: unknown): void => {
        cancelTimeout();
        reject(toForwardError(error));
      };
      const onResponse = (response: IncomingMessage): void => {
        const { statusCode = 0 } = response;
        // Node accepts any three digits as a status; a final response has 200 to 599 (RFC 9110 §15).
        if (statusCode < 200 || statusCode > 599) {
          response.destroy();
          const diagnosis = { cause: 'invalid status code' };
          onFailure(new ServiceError('UPSTREAM_INVALID_RESPONSE', { diagnosis }));
          return;
        }
        received = response;
        response.rawHeaders = endToEndLines(response, sessions);
        resolve(response);
      };
      const onClose = (): void => {
        cancelTimeout();
        const diagnosis = { cause: 'the connection was closed before a response came' };
        if (received === undefined) onFailure(new ServiceError('UPSTREAM_UNREACHABLE', { diagnosis }));
      };
      const upstream = { method, target: basePath + target, headers, body };
      const request = new ForwardedRequest(upstream, { onResponse, onFailure, onClose });
      const cancelTimeout = afterHalves(writeTimeoutMs, () => {
        // It is in memory, and is read once the change is settled.
        if (received?.complete === true) return;
        onFailure(new ServiceError('UPSTREAM_TIMEOUT'));
        // Aborts the upstream request, even while it waits for a connection.
        request.emit('aborted');
      });
      void proxy(request, res, onFailure);
    });
  };
}

function createProxy(target: string, agent: Agent) {
  return createProxyMiddleware<ForwardedRequest>({
    target,
    agent,
    // http-proxy would otherwise parse and rewrite the target (backslashes become slashes).
    toProxy: true,
    // The response is forwarded after the invalidation of the handle, and keeps its repeated headers.
    selfHandleResponse: true,
    on: {
      proxyReq: (sent, request) => {
        sent.once('close', request.callbacks.onClose);
        request.sendBy(sent);
      },
      // The library types the response with the class of the request.
      proxyRes: (response, { callbacks }) => callbacks.onResponse(response as unknown as IncomingMessage),
      error: (error, { callbacks }) => callbacks.onFailure(error),
    },
  });
}

/** Converts a socket error that http-proxy has passed on. */
function toForwardError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = isBeforeRequest(error) ? 'UPSTREAM_CONNECT_FAILED' : 'UPSTREAM_UNREACHABLE';
  return new ServiceError(code, { diagnosis: diagnose(codeOf(error), error), cause: error });
}

/**
 * Forwards under a concurrency limit. A request holds its slot until its response is fully read, or until a
 * waiting request preempts it because its client has stopped reading.
 */
export function limitForwards(forward: ForwardRequest, limiter: ConcurrencyLimiter): ForwardRequest {
  return async function limitedForward(req, res, content) {
    const { handle, caller } = content;
    const key = handle && callerKey(handle.key, req.headers.authorization);
    const release = await limiter.acquire({ key, caller });
    try {
      // Nothing has been sent yet, and http-proxy would not notice a disconnected client.
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

/** Returns a function that aborts the response if the client has not read for a given time. */
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
