// Sends one request to a server and receives the whole response within a timeout and a size limit.
import type { Dispatcher } from 'undici';
import { ServiceError } from '../errors.js';
import { isConnectionFailure, toServiceError } from './failure.js';
import { withoutSlashesAtEnd } from '../handle/handle.js';
import {
  type UpstreamResponse,
  bodyTooLarge,
  type EncodedResponse,
  decodeBody,
  isEncoded,
} from './response.js';

/**
 * The part of undici's Dispatcher that the proxy uses and tests replace. `reset` requests a new connection,
 * closed after the response.
 */
export interface UpstreamDispatcher {
  dispatch: Dispatcher['dispatch'];
}

export interface UpstreamRequest {
  /** Scheme, host and port. */
  origin: string;
  method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  /** Sent without normalisation. */
  path: string;
  headers: string[];
  body?: string;
}

interface ExchangeLimits {
  /** Timeout until the last response byte, including the retry (ms). */
  timeoutMs: number;
  maxBodyBytes: number;
}

/** Splits an address into its origin and base path. */
export function parseAddress(address: string): { origin: string; basePath: string } {
  const { origin, pathname } = new URL(address);
  return { origin, basePath: withoutSlashesAtEnd(pathname) };
}

/**
 * Returns all request headers except body headers. Of the caller's headers,
 * forwards only the login and `via`.
 */
export function requestHeaders(of: {
  pseudonym: string;
  /** Previous proxies in `Via`. */
  via?: string | undefined;
  authorization?: string | undefined;
}): string[] {
  return [
    ...['Accept', 'application/json'],
    // Records are small and the server is near: compression would cost more than it saves.
    ...['Accept-Encoding', 'identity'],
    ...['User-Agent', 'handle-resolver-proxy'],
    // RFC 9110 §7.6.3: an incoming request with this name reveals a loop.
    ...['Via', `${of.via === undefined ? '' : `${of.via}, `}1.1 ${of.pseudonym}`],
    ...(of.authorization === undefined ? [] : ['Authorization', of.authorization]),
  ];
}

/**
 * Sends a request and reads the response, without following redirects. A GET or HEAD whose connection failed
 * is retried once on a new connection, because the server may have closed the idle one (RFC 9110 §9.2.2).
 *
 * @throws ServiceError UPSTREAM_TIMEOUT, UPSTREAM_UNREACHABLE or UPSTREAM_INVALID_RESPONSE
 */
export async function exchange(
  dispatcher: UpstreamDispatcher,
  request: UpstreamRequest,
  { timeoutMs, maxBodyBytes }: ExchangeLimits,
): Promise<UpstreamResponse> {
  const deadline = startDeadline(timeoutMs);
  const limits = { deadline, maxBodyBytes };
  try {
    let response: EncodedResponse;
    try {
      response = await receiveOnce(dispatcher, request, limits);
    } catch (failure) {
      const isSafe = request.method === 'GET' || request.method === 'HEAD';
      if (!isSafe || !isConnectionFailure(failure)) throw failure;
      response = await receiveOnce(dispatcher, { ...request, reset: true }, limits);
    }
    const { status, headers } = response;
    const body = isEncoded(response) ? await decodeFully(response, maxBodyBytes) : response.body;
    return { status, headers, body: body.toString('utf8') };
  } finally {
    clearTimeout(deadline.timer);
  }
}

async function decodeFully(response: EncodedResponse, maxBodyBytes: number): Promise<Buffer> {
  try {
    return await decodeBody(response, maxBodyBytes);
  } catch (error) {
    throw toServiceError(error);
  }
}

/** Timeout of an exchange. An AbortSignal with a listener would double the cost of an exchange. */
interface Deadline {
  timer: NodeJS.Timeout;
  /** The current attempt, which fails at the deadline. */
  attempt?: ResponseCollector;
}

const SLOW =
  'check the load of the server, or give it more time (upstream.timeout, for writes upstream.writeTimeout)';

function startDeadline(timeoutMs: number): Deadline {
  const deadline: Deadline = {
    timer: setTimeout(() => {
      const cause = `no complete response within ${Math.ceil(timeoutMs)} ms`;
      deadline.attempt?.fail(new ServiceError('UPSTREAM_TIMEOUT', { diagnosis: { cause, remedy: SLOW } }));
    }, timeoutMs),
  };
  return deadline;
}

interface AttemptLimits {
  deadline: Deadline;
  maxBodyBytes: number;
}

/** Makes one attempt. @throws ServiceError UPSTREAM_* */
function receiveOnce(
  dispatcher: UpstreamDispatcher,
  options: Dispatcher.DispatchOptions,
  { deadline, maxBodyBytes }: AttemptLimits,
): Promise<EncodedResponse> {
  return new Promise((resolve, reject) => {
    const collector = new ResponseCollector(maxBodyBytes, { resolve, reject });
    deadline.attempt = collector;
    try {
      dispatcher.dispatch(options, collector);
    } catch (error) {
      reject(toServiceError(error));
    }
  });
}

interface Settle {
  resolve: (response: EncodedResponse) => void;
  reject: (error: Error) => void;
}

/** Collects a response; aborts it above `maxBodyBytes`. */
class ResponseCollector implements Dispatcher.DispatchHandler {
  #status = 0;
  #headers: UpstreamResponse['headers'] = {};
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #failure: Error | undefined;
  #controller: Dispatcher.DispatchController | undefined;

  constructor(
    private readonly maxBodyBytes: number,
    private readonly settle: Settle,
  ) {}

  /** Aborts the response: a connection with an unread response is not reusable. */
  fail(error: Error): void {
    this.#failure = error;
    this.settle.reject(toServiceError(error));
    this.#controller?.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // The timeout may have expired while the request waited for a connection.
    if (this.#failure) controller.abort(this.#failure);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: UpstreamResponse['headers'],
  ): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length <= this.maxBodyBytes) this.#chunks.push(chunk);
    else this.fail(bodyTooLarge(this.#status, this.maxBodyBytes));
  }

  onResponseEnd(): void {
    this.#release();
    const [only] = this.#chunks;
    const body = this.#chunks.length === 1 && only ? only : Buffer.concat(this.#chunks, this.#length);
    this.settle.resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#release();
    this.settle.reject(toServiceError(error));
  }

  /**
   * Breaks the cycle between controller and collector, which would keep a response alive for several GC runs.
   */
  #release(): void {
    this.#controller = undefined;
  }
}
