// Sends one request to a server and receives the whole response within a timeout and a size limit.
import type { Dispatcher } from 'undici';
import { ServiceError } from '../errors.js';
import { isConnectionFailure, toServiceError } from './failure.js';
import { appendChunk } from '../handle/bytes.js';
import { withoutSlashesAtEnd } from '../handle/handle.js';
import {
  type EncodedResponse,
  type UpstreamResponse,
  bodyTooLarge,
  decodeBody,
  isEncoded,
} from './response.js';

/** The part of undici's Dispatcher in use, which tests replace. `reset`: a new connection, closed after the response. */
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

/** Splits an address into its origin and base path. */
export function parseAddress(address: string): { origin: string; basePath: string } {
  const { origin, pathname } = new URL(address);
  return { origin, basePath: withoutSlashesAtEnd(pathname) };
}

/** Returns all request headers except body headers. Of the caller's headers, forwards only the login and `via`. */
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

const SLOW =
  'check the load of the server, or give it more time (upstream.timeout, for writes upstream.writeTimeout)';

/**
 * Calls `run` after `ms`, in two halves: a pause of the process ends only one of them, and a response that is larger
 * than the buffers of its connection is read in the other. After each, what is pending is read. Returns a cancel function.
 */
export function afterHalves(ms: number, run: () => void): () => void {
  let timer: NodeJS.Timeout;
  let immediate: NodeJS.Immediate | undefined;
  const afterHalf = (then: () => void): void => {
    timer = setTimeout(() => (immediate = setImmediate(then)), ms / 2).unref();
  };
  afterHalf(() => afterHalf(run));
  return () => {
    clearTimeout(timer);
    clearImmediate(immediate);
  };
}

/**
 * Sends a request and reads the response, without following redirects. A GET or HEAD whose connection failed
 * is retried once on a new connection, because the server may have closed the idle one (RFC 9110 §9.2.2).
 * `timeoutMs` ends at the last response byte, including the retry.
 *
 * @throws ServiceError UPSTREAM_TIMEOUT, UPSTREAM_UNREACHABLE or UPSTREAM_INVALID_RESPONSE
 */
export async function exchange(
  dispatcher: UpstreamDispatcher,
  request: UpstreamRequest,
  { timeoutMs, maxBodyBytes }: { timeoutMs: number; maxBodyBytes: number },
): Promise<UpstreamResponse> {
  let attempt: ResponseCollector | undefined;
  // An AbortSignal with a listener would double the cost of an exchange.
  const cancelTimeout = afterHalves(timeoutMs, () => {
    const cause = `no complete response within ${Math.ceil(timeoutMs)} ms`;
    attempt?.fail(new ServiceError('UPSTREAM_TIMEOUT', { diagnosis: { cause, remedy: SLOW } }));
  });
  const send = (options: Dispatcher.DispatchOptions): Promise<EncodedResponse> =>
    new Promise((resolve, reject) => {
      attempt = new ResponseCollector(maxBodyBytes, resolve, reject);
      dispatcher.dispatch(options, attempt);
    });
  try {
    let response: EncodedResponse;
    try {
      response = await send(request);
    } catch (error) {
      const isSafe = request.method === 'GET' || request.method === 'HEAD';
      if (!isSafe || !isConnectionFailure(error)) throw error;
      response = await send({ ...request, reset: true });
    }
    const { status, headers } = response;
    const body = isEncoded(response) ? await decodeBody(response, maxBodyBytes) : response.body;
    return { status, headers, body: body.toString('utf8') };
  } catch (error) {
    throw toServiceError(error);
  } finally {
    cancelTimeout();
  }
}

const NO_BYTES = Buffer.alloc(0);

/**
 * Chunks and heads of a response, besides a chunk for each `MIN_CHUNK_BYTES`: reading a chunk takes longer than a hundred
 * bytes, so a record of a megabyte in chunks of a byte would take seconds. Handle servers send chunks of some kilobytes.
 * Interim responses (RFC 9110 §15.2), each with a head, may come without end.
 */
const MAX_CHUNKS = 1000;
const MIN_CHUNK_BYTES = 64;

const tooManyPieces = (cause: string): ServiceError =>
  new ServiceError('UPSTREAM_INVALID_RESPONSE', { diagnosis: { cause } });

/** Collects a response; aborts it above `maxBodyBytes`. */
class ResponseCollector implements Dispatcher.DispatchHandler {
  #status = 0;
  #headers: UpstreamResponse['headers'] = {};
  #bytes: Buffer = NO_BYTES;
  #length = 0;
  #chunks = 0;
  #failure: Error | undefined;
  #controller: Dispatcher.DispatchController | undefined;

  constructor(
    private readonly maxBodyBytes: number,
    private readonly resolve: (response: EncodedResponse) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  /** Aborts the response: a connection with an unread response is not reusable. */
  fail(error: Error): void {
    this.#failure = error;
    this.reject(error);
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
    if (++this.#chunks > MAX_CHUNKS) this.fail(tooManyPieces('it sends too many interim responses'));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const before = this.#length;
    this.#length += chunk.length;
    if (this.#length > this.maxBodyBytes) this.fail(bodyTooLarge(this.#status, this.maxBodyBytes));
    else if (++this.#chunks > MAX_CHUNKS + this.#length / MIN_CHUNK_BYTES)
      this.fail(tooManyPieces('its chunks are too short'));
    else this.#bytes = before === 0 ? chunk : appendChunk(this.#bytes, before, chunk);
  }

  onResponseEnd(): void {
    // Breaks the cycle between controller and collector, which would keep a response alive for several GC runs.
    this.#controller = undefined;
    const body = this.#bytes.subarray(0, this.#length);
    this.resolve({ status: this.#status, headers: this.#headers, body });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#controller = undefined;
    this.reject(error);
  }
}
