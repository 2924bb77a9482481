// Reads and writes records with one caller's credentials; results are never shared.
import type { Config } from '../config/schema.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import { ServiceError } from '../errors.js';
import { type HandleRef, handleToPath } from '../handle/handle.js';
import { type ListPage, RESPONSE_CODE } from '../handle/outcome.js';
import type { HandleValue, Selection } from '../handle/value.js';
import type { TimeSlicer } from '../time-slicer.js';
import type { Caller } from './caller.js';
import { type ConcurrencyLimiter, callerKey } from './concurrency-limiter.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import { wasNeverSent } from './failure.js';
import { type RecordAnswer, readAnswer, readInSlices, valuesOf } from './reply.js';
import type { Sessions } from './sessions.js';

export interface ReadOptions {
  authorization?: string | undefined;
  authoritative?: boolean;
  /**
   * True requests public values only. With false, the server refuses unless the caller may read all values.
   */
  publicOnly?: boolean;
  /** Default: all values. */
  selection?: Selection;
  caller?: Caller | undefined;
}

interface SendOptions {
  authorization?: string | undefined;
  caller?: Caller | undefined;
  /** Called just before the request is sent; an exception cancels the request. */
  beforeSend?: (() => void) | undefined;
}

export interface WriteOptions extends SendOptions {
  values: readonly HandleValue[];
  /** With false, the server refuses if a record or value exists, checking and writing atomically. */
  overwrite: boolean;
}

export interface RemoveOptions extends SendOptions {
  /** Default: the whole record. */
  indexes?: readonly number[];
}

export interface ListOptions extends ListPage {
  authorization?: string | undefined;
  caller?: Caller | undefined;
}

/** A read response; `values` is undefined for a refusal. */
export interface RecordRead extends RecordAnswer {
  values: HandleValue[] | undefined;
}

/**
 * Returns refusals (401, 403, 404, 409, 5xx in Handle JSON) as results.
 *
 * @throws ServiceError for an invalid response
 */
export interface RecordClient {
  get: (handle: HandleRef, options: ReadOptions) => Promise<RecordRead>;
  /** Creates or replaces a record. */
  put: (handle: HandleRef, options: WriteOptions) => Promise<RecordAnswer>;
  /** Adds or replaces values of an existing record. */
  putValues: (handle: HandleRef, options: WriteOptions) => Promise<RecordAnswer>;
  /** Removes a record, or the values at `indexes`. */
  remove: (handle: HandleRef, options: RemoveOptions) => Promise<RecordAnswer>;
  list: (prefix: string, options: ListOptions) => Promise<RecordAnswer>;
}

interface RecordClientSettings
  extends
    Pick<
      ServerConfig,
      'url' | 'readOnly' | 'timeoutMs' | 'writeTimeoutMs' | 'maxBodyBytes' | 'maxRecordBytes'
    >,
    Pick<Config['upstream'], 'caseSensitive'> {}

interface RecordClientParts {
  /** This proxy's name in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
  limiter: Pick<ConcurrencyLimiter, 'run'>;
  dispatcher: UpstreamDispatcher;
  slicer: TimeSlicer;
  sessions: Sessions;
  /** Called after a refused write whose login the server ignored. */
  onIgnoredLogin: (() => void) | undefined;
}

interface CallerRequest {
  method: 'GET' | 'PUT' | 'DELETE';
  /** Undefined for the handle list. */
  handle?: HandleRef;
  query: string;
  authorization?: string | undefined;
  body?: string;
  caller?: Caller | undefined;
  beforeSend?: SendOptions['beforeSend'];
}

export function createRecordClient(settings: RecordClientSettings, parts: RecordClientParts): RecordClient {
  const send = createSend(settings, parts);

  async function write(request: CallerRequest): Promise<RecordAnswer> {
    try {
      const answer = await send(request, settings.writeTimeoutMs);
      if (answer.responseCode === RESPONSE_CODE.authenticationNeeded) parts.onIgnoredLogin?.();
      return answer;
    } catch (error) {
      if (wasNeverSent(error)) throw new ServiceError('UPSTREAM_CONNECT_FAILED', { cause: error });
      throw error;
    }
  }
  const read = (request: Omit<CallerRequest, 'method'>): Promise<RecordAnswer> =>
    send({ ...request, method: 'GET' }, settings.timeoutMs);
  const putWith = (handle: HandleRef, { values, ...given }: WriteOptions, query: string) =>
    write({ method: 'PUT', handle, query, ...given, body: JSON.stringify({ handle: handle.text, values }) });

  return {
    async get(handle, { authorization, caller, ...options }) {
      const answer = await read({ handle, query: readQueryOf(options), authorization, caller });
      return { ...answer, values: valuesOf(answer) };
    },
    put: (handle, given) => putWith(handle, given, `?overwrite=${given.overwrite}`),
    putValues: (handle, given) => putWith(handle, given, `?index=various&overwrite=${given.overwrite}`),
    remove: (handle, { indexes = [], ...given }) =>
      write({
        method: 'DELETE',
        handle,
        query: queryOf(indexes.map((index) => `index=${index}`)),
        ...given,
      }),
    list: (prefix, { authorization, caller, page, pageSize }) =>
      read({
        query: queryOf([
          `prefix=${encodeURIComponent(prefix)}`,
          ...(page === undefined || pageSize === undefined ? [] : [`page=${page}`, `pageSize=${pageSize}`]),
        ]),
        authorization,
        caller,
      }),
  };
}

/**
 * Creates the function that sends one caller's request. Writes are never retried: the first
 * attempt may have taken effect.
 */
function createSend(
  settings: RecordClientSettings,
  { pseudonym, limiter, dispatcher, slicer, sessions }: RecordClientParts,
) {
  const { url, readOnly, caseSensitive, maxBodyBytes: maxListBytes, maxRecordBytes } = settings;
  const { origin, basePath } = parseAddress(url);

  return async function send(request: CallerRequest, timeoutMs: number): Promise<RecordAnswer> {
    const { method, handle, body } = request;
    // A read-only server receives no credentials.
    const authorization = readOnly ? undefined : sessions.loginFor(request.authorization);
    const path = `${basePath}/api/handles${handle === undefined ? '' : `/${handleToPath(handle.text)}`}`;
    const headers = requestHeaders({ pseudonym, authorization });
    if (body !== undefined) headers.push('Content-Type', 'application/json');
    const key = handle && callerKey(handle.key, authorization);
    return limiter.run(
      async () => {
        const sent = {
          origin,
          method,
          path: path + request.query,
          headers,
          ...(body !== undefined && { body }),
        };
        request.beforeSend?.();
        const maxBodyBytes = handle === undefined ? maxListBytes : maxRecordBytes;
        const response = await exchange(dispatcher, sent, { timeoutMs, maxBodyBytes });
        const reading = readAnswer(response, { handle: handle?.text, caseSensitive });
        const chars = response.body.length;
        const answer = await readInSlices(slicer, reading, { chars, caller: request.caller });
        return { ...answer, challenge: answer.challenge && sessions.challengeOf(answer.challenge) };
      },
      { key, caller: request.caller },
    );
  };
}

function readQueryOf({ authoritative, publicOnly, selection }: ReadOptions): string {
  const { indexes, types } = selection ?? { indexes: [], types: [] };
  return queryOf([
    ...(authoritative === true ? ['auth=true'] : []),
    ...(publicOnly === undefined ? [] : [`publicOnly=${publicOnly}`]),
    ...indexes.map((index) => `index=${index}`),
    ...types.map((type) => `type=${encodeURIComponent(type)}`),
  ]);
}

const queryOf = (parts: readonly string[]): string => (parts.length === 0 ? '' : `?${parts.join('&')}`);
