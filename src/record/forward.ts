// Sends a request on to the upstream (http-proxy-middleware) and gives back the open answer.
import { type Agent, type ClientRequest, IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import type { Request, Response } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { ServiceError } from '../errors.js';
import { isBeforeConnection } from '../upstream/failure.js';
import { peerOf } from '../server/client-address.js';
import { forwardedHeaders } from './forwarded-headers.js';

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

interface Outgoing {
  method: string;
  target: string;
  headers: OutgoingHttpHeaders;
  body: Buffer;
}

interface Outcome {
  answered: (answer: IncomingMessage) => void;
  failed: (error: unknown) => void;
}

/**
 * The request as http-proxy sees it. It is not the client's: http-proxy would abort with a client that leaves,
 * although the upstream may act on what it was sent, and the handle would be forgotten before the write.
 */
class ForwardedRequest extends IncomingMessage {
  readonly outcome: Outcome;
  readonly #outgoing: Outgoing;
  #sent: ClientRequest | undefined;

  constructor(client: IncomingMessage, outgoing: Outgoing, outcome: Outcome) {
    super(client.socket);
    this.method = outgoing.method;
    this.url = outgoing.target;
    this.outcome = outcome;
    this.#outgoing = outgoing;
  }

  /** Called when http-proxy is done with headers and before it reads them: what it has added is gone. */
  decideHeaders(): void {
    this.headers = this.#outgoing.headers as IncomingMessage['headers'];
  }

  /** The one way http-proxy sends. It may get its connection much later, when others are done with theirs. */
  override pipe<T extends NodeJS.WritableStream>(sent: T): T {
    this.#sent = sent as unknown as ClientRequest;
    // http-proxy has folded slashes in it.
    this.#sent.path = this.#outgoing.target;
    this.#sent.end(this.#outgoing.body);
    return sent;
  }

  /** Takes the request back, also while it waits for a connection. */
  giveUp(): void {
    this.#sent?.destroy();
  }
}

export function createForwarder({ upstreamUrl, agent, timeoutMs, pseudonym }: ForwarderDeps): Forward {
  const { host, pathname } = new URL(upstreamUrl);
  const basePath = pathname.replace(/\/+$/, '');
  const proxy = createProxyMiddleware<ForwardedRequest, Response>({
    target: upstreamUrl,
    agent,
    // http-proxy would parse and rewrite the target (backslashes become slashes).
    toProxy: true,
    // The answer is held back until the handle is forgotten, and keeps its doubled headers.
    selfHandleResponse: true,
    on: {
      start: (request) => {
        request.decideHeaders();
      },
      proxyReq: (sent, { outcome }) => {
        sent.once('close', () => {
          outcome.failed(brokenOff());
        });
      },
      proxyRes: takeAnswer,
      error: (error, { outcome }) => {
        outcome.failed(error);
      },
    },
  });

  return async function forward(req, res, { target, body }) {
    const { method } = req;
    const client = { method, httpVersion: req.httpVersion, headers: req.headers, peer: peerOf(req) };
    const headers = forwardedHeaders(client, { host, pseudonym, bodyBytes: body.length });
    return new Promise((answered, reject) => {
      const failed = (error: unknown): void => {
        clearTimeout(limit);
        reject(asServiceError(error));
      };
      const outgoing = { method, target: basePath + target, headers, body };
      const request = new ForwardedRequest(req, outgoing, { answered, failed });
      const limit = setTimeout(() => {
        failed(new ServiceError('UPSTREAM_TIMEOUT'));
        request.giveUp();
      }, timeoutMs);
      void proxy(request, res, failed);
    });
  };
}

function takeAnswer(answer: IncomingMessage, { outcome }: ForwardedRequest): void {
  if (isStatus(answer.statusCode)) {
    outcome.answered(answer);
    return;
  }
  answer.destroy();
  outcome.failed(new ServiceError('UPSTREAM_BAD_ANSWER', { detail: 'its status is none that HTTP knows' }));
}

/** Of a final answer (RFC 9110 §15); Node takes any three digits. */
const isStatus = (status = 0): boolean => status >= 200 && status <= 599;

const brokenOff = (): ServiceError =>
  new ServiceError('UPSTREAM_UNREACHABLE', { detail: 'the connection was closed before an answer came' });

/** http-proxy hands on the error of the socket; its text names addresses, so only the code is told. */
function asServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  if (isBeforeConnection(code)) return new ServiceError('UPSTREAM_REFUSED', { detail: code, cause: error });
  return new ServiceError('UPSTREAM_UNREACHABLE', { detail: code, cause: error });
}
