// Reads and writes records with one caller's credentials; results are never shared.
import { ServiceError } from '../errors.js';
import { type HandleRef, handleToPath } from '../handle/handle.js';
import type { Steps } from '../time-slicer.js';
import { type ConcurrencyLimiter, callerKey } from './concurrency-limiter.js';
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
import { type CallerAnswer, readAnswer, readInSlices, readListAnswer, allValuesIn } from './reply.js';
import type { UpstreamResponse } from './response.js';
import type { Sessions } from './sessions.js';

interface MethodAndQuery {
  method: 'GET' | 'PUT' | 'DELETE';
  query: string;
  body?: string;
}

interface CallerRequest<Answer> extends SendOptions, MethodAndQuery {
  /** Undefined for the handle list. */
  handle?: HandleRef;
  timeoutMs: number;
  maxBodyBytes: number;
  readResponse: (response: UpstreamResponse) => Steps<Answer>;
}

/**
 * Creates the client that sends requests with one caller's login. Writes are never retried: the first attempt may
 * have taken effect. `lists` limits the lists of clients that are in memory at the same time.
 */
export function createRecordClient(
  settings: ServerSettings,
  { pseudonym, limiter, dispatcher, slicer }: ServerAccess,
  { sessions, lists }: { sessions: Sessions; lists: ConcurrencyLimiter },
): RecordClient {
  const { url, readOnly, caseSensitive, timeoutMs, writeTimeoutMs, maxBodyBytes, maxRecordBytes } = settings;
  const { origin, basePath } = parseAddress(url);

  async function send<Answer extends CallerAnswer>(given: CallerRequest<Answer>): Promise<Answer> {
    const { method, handle, query, body, caller } = given;
    // A read-only server receives no credentials.
    const authorization = readOnly ? undefined : sessions.loginFor(given.authorization);
    const path = `${basePath}/api/handles${handle === undefined ? '' : `/${handleToPath(handle.text)}`}${query}`;
    const headers = requestHeaders({ pseudonym, authorization });
    if (body !== undefined) headers.push('Content-Type', 'application/json');
    const request = { origin, method, path, headers, ...(body !== undefined && { body }) };
    const work = async (): Promise<Answer> => {
      given.beforeSend?.();
      const response = await exchange(dispatcher, request, given);
      const reading = given.readResponse(response);
      const answer = await readInSlices(slicer, reading, { chars: response.body.length, caller });
      return { ...answer, challenge: answer.challenge && sessions.challengeOf(answer.challenge) };
    };
    return limiter.run(work, { key: handle && callerKey(handle.key, authorization), caller });
  }

  const ofRecord = (handle: HandleRef) => ({
    handle,
    maxBodyBytes: maxRecordBytes,
    readResponse: (response: UpstreamResponse) =>
      readAnswer(response, { handle: handle.text, caseSensitive }),
  });

  return {
    async get(handle, options) {
      const query = readQueryOf(options);
      const answer = await send({ ...options, ...ofRecord(handle), method: 'GET', query, timeoutMs });
      return { ...answer, values: allValuesIn(answer) };
    },
    async write(handle, change, given) {
      try {
        const request = { ...given, ...ofRecord(handle), ...requestOf(handle, change) };
        return await send({ ...request, timeoutMs: writeTimeoutMs });
      } catch (error) {
        if (wasNeverSent(error)) throw new ServiceError('UPSTREAM_CONNECT_FAILED', { cause: error });
        throw error;
      }
    },
    list(prefix, { page, pageSize, ...given }) {
      const isPage = page !== undefined && pageSize !== undefined;
      const paging = isPage ? [`page=${page}`, `pageSize=${pageSize}`] : [];
      const query = queryOf([`prefix=${encodeURIComponent(prefix)}`, ...paging]);
      const read = () =>
        send({ ...given, method: 'GET', query, timeoutMs, maxBodyBytes, readResponse: readListAnswer });
      const { caller } = given;
      // A mirror reads its pages in sequence.
      return caller?.client === undefined ? read() : lists.run(read, { caller });
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
