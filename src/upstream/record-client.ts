// Reads and writes records with one caller's credentials; results are never shared.
import { ServiceError } from '../errors.js';
import { type HandleRef, handleToPath } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import type { Caller } from './caller.js';
import { callerKey } from './concurrency-limiter.js';
import type {
  ServerAccess,
  ServerSettings,
  ReadOptions,
  RecordClient,
  SendOptions,
  WriteOptions,
} from './contract.js';
import { exchange, parseAddress, requestHeaders } from './exchange.js';
import { wasNeverSent } from './failure.js';
import { type RecordAnswer, readAnswer, readInSlices, allValuesIn } from './reply.js';
import type { Sessions } from './sessions.js';

interface LoginAccess extends ServerAccess {
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

export function createRecordClient(settings: ServerSettings, parts: LoginAccess): RecordClient {
  const send = createCallerSend(settings, parts);

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
  const read = (request: CallerRequest): Promise<RecordAnswer> => send(request, settings.timeoutMs);
  const putWith = (handle: HandleRef, { values, ...given }: WriteOptions, query: string) =>
    write({ method: 'PUT', handle, query, ...given, body: JSON.stringify({ handle: handle.text, values }) });

  return {
    async get(handle, { authorization, caller, ...options }) {
      const answer = await read({
        method: 'GET',
        handle,
        query: readQueryOf(options),
        authorization,
        caller,
      });
      return { ...answer, values: allValuesIn(answer) };
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
        method: 'GET',
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
function createCallerSend(
  settings: ServerSettings,
  { pseudonym, limiter, dispatcher, slicer, sessions }: LoginAccess,
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
