// Reads and writes records with one caller's credentials; results are never shared.
import { ServiceError } from '../errors.js';
import { type HandleRef, handleToPath } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { callerKey } from './concurrency-limiter.js';
import type {
  ServerAccess,
  ServerSettings,
  ReadOptions,
  RecordChange,
  RecordClient,
  SendOptions,
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

interface MethodAndQuery {
  method: 'GET' | 'PUT' | 'DELETE';
  query: string;
  body?: string;
}

interface CallerRequest extends SendOptions, MethodAndQuery {
  /** Undefined for the handle list. */
  handle?: HandleRef;
}

/**
 * Creates the client that sends requests with one caller's login. Writes are never retried: the first attempt may
 * have taken effect.
 */
export function createRecordClient(settings: ServerSettings, access: LoginAccess): RecordClient {
  const { pseudonym, limiter, dispatcher, slicer, sessions, onIgnoredLogin } = access;
  const { url, readOnly, caseSensitive, maxBodyBytes: maxListBytes, maxRecordBytes } = settings;
  const { origin, basePath } = parseAddress(url);

  async function send(given: CallerRequest, timeoutMs: number): Promise<RecordAnswer> {
    const { method, handle, query, body, caller } = given;
    // A read-only server receives no credentials.
    const authorization = readOnly ? undefined : sessions.loginFor(given.authorization);
    const path = `${basePath}/api/handles${handle === undefined ? '' : `/${handleToPath(handle.text)}`}${query}`;
    const headers = requestHeaders({ pseudonym, authorization });
    if (body !== undefined) headers.push('Content-Type', 'application/json');
    const request = { origin, method, path, headers, ...(body !== undefined && { body }) };
    const limits = { timeoutMs, maxBodyBytes: handle === undefined ? maxListBytes : maxRecordBytes };
    const work = async (): Promise<RecordAnswer> => {
      given.beforeSend?.();
      const response = await exchange(dispatcher, request, limits);
      const reading = (): RecordAnswer => readAnswer(response, { handle: handle?.text, caseSensitive });
      const answer = await readInSlices(slicer, reading, { chars: response.body.length, caller });
      return { ...answer, challenge: answer.challenge && sessions.challengeOf(answer.challenge) };
    };
    return limiter.run(work, { key: handle && callerKey(handle.key, authorization), caller });
  }

  return {
    async get(handle, options) {
      const query = readQueryOf(options);
      const answer = await send({ ...options, method: 'GET', handle, query }, settings.timeoutMs);
      return { ...answer, values: allValuesIn(answer) };
    },
    async write(handle, change, given) {
      try {
        const request = { ...given, handle, ...requestOf(handle, change) };
        const answer = await send(request, settings.writeTimeoutMs);
        if (answer.responseCode === RESPONSE_CODE.authenticationNeeded) onIgnoredLogin?.();
        return answer;
      } catch (error) {
        if (wasNeverSent(error)) throw new ServiceError('UPSTREAM_CONNECT_FAILED', { cause: error });
        throw error;
      }
    },
    list(prefix, { page, pageSize, ...given }) {
      const isPage = page !== undefined && pageSize !== undefined;
      const paging = isPage ? [`page=${page}`, `pageSize=${pageSize}`] : [];
      const query = queryOf([`prefix=${encodeURIComponent(prefix)}`, ...paging]);
      return send({ ...given, method: 'GET', query }, settings.timeoutMs);
    },
  };
}

function requestOf(handle: HandleRef, change: RecordChange): MethodAndQuery {
  if (change.kind === 'removal')
    return { method: 'DELETE', query: queryOf((change.indexes ?? []).map((index) => `index=${index}`)) };
  const { kind, values, overwrite } = change;
  return {
    method: 'PUT',
    query: queryOf([...(kind === 'values' ? ['index=various'] : []), `overwrite=${overwrite}`]),
    body: JSON.stringify({ handle: handle.text, values }),
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
