// Client of a reverse look-up service (HRLS): the handles that hold a value.
import { ServiceError } from '../errors.js';
import { parseJson } from '../handle/json.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from './exchange.js';
import { explain, toServiceError, REVERSE_LOOKUP_KEYS } from './failure.js';
import { type UpstreamResponse, invalidResponse } from './response.js';

interface ReverseLookupOptions {
  url: string;
  pseudonym: string;
  timeoutMs: number;
  maxBodyBytes: number;
  dispatcher: UpstreamDispatcher;
}

interface LookupQuery {
  prefix: string;
  /** Type and pattern of each value a handle must have. */
  conditions: readonly (readonly [type: string, pattern: string])[];
  limit: number;
  /** As the client sent it: the service has logins of its own. */
  authorization?: string | undefined;
}

/** The handles, `'unauthorized'`, or a ServiceError. */
export type ReverseLookup = (query: LookupQuery) => Promise<string[] | 'unauthorized' | 'forbidden'>;

export function createReverseLookup(options: ReverseLookupOptions): ReverseLookup {
  const { pseudonym, dispatcher, timeoutMs, maxBodyBytes } = options;
  const { origin, basePath } = parseAddress(options.url);
  return async function reverseLookup({ prefix, conditions, limit, authorization }) {
    // Servers fold these two out of a path, in any spelling: another path would be requested.
    if (prefix === '.' || prefix === '..') {
      throw new ServiceError('BAD_PATH', { message: `There is no prefix ${prefix}` });
    }
    const query = [...conditions, ['limit', String(limit)] as const]
      .map((pair) => pair.map(encodeURIComponent).join('='))
      .join('&');
    const path = `${basePath}/hrls/handles/${encodeURIComponent(prefix)}?${query}`;
    const headers = requestHeaders({ pseudonym, authorization });
    try {
      const request = { origin, method: 'GET' as const, path, headers };
      return readHandles(await exchange(dispatcher, request, { timeoutMs, maxBodyBytes }));
    } catch (error) {
      throw asLookupFailure(toServiceError(error));
    }
  };
}

function readHandles(response: UpstreamResponse): string[] | 'unauthorized' | 'forbidden' {
  if (response.status === 401) return 'unauthorized';
  if (response.status === 403) return 'forbidden';
  const handles = response.status === 200 ? parsed(response.body) : undefined;
  const isList = Array.isArray(handles) && handles.every((handle) => typeof handle === 'string');
  if (!isList) throw invalidResponse('no list of handles', response);
  return handles;
}

function parsed(json: string): unknown {
  try {
    return parseJson(json);
  } catch {
    return undefined;
  }
}

/** The message names the service, so that an operator does not search at the Handle server. */
const asLookupFailure = (failure: ServiceError): ServiceError =>
  new ServiceError(failure.code, {
    message: failure.message.replace('The Handle server', 'The reverse look-up service'),
    diagnosis: explain(failure, REVERSE_LOOKUP_KEYS),
    cause: failure,
  });
