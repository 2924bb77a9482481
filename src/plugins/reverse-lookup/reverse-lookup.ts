// Forwards requests to the reverse lookup service, and asks it for searches.
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { ServiceError } from '../../errors.js';
import { parseJson } from '../../handle/json.js';
import type { SearchQuery, SearchService } from '../../hooks.js';
import { createForwardRequest } from '../../record/forward-request.js';
import { createForward } from '../../record/forward.js';
import { createConnections } from '../../upstream/connections.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from '../../upstream/exchange.js';
import { explainServerFailure, toServiceError } from '../../upstream/failure.js';
import { type UpstreamResponse, invalidResponse } from '../../upstream/response.js';
import { sessionsOf } from '../../upstream/sessions.js';
import { type ReverseLookupConfig, KEYS } from './plugin.js';

export function start(host: Host, settings: ReverseLookupConfig): Started {
  const { url = '' } = settings.reverseLookup;
  const { writeTimeoutMs, connections } = settings.upstream;
  const { pseudonym, upstreams } = host;
  const { writeAgent, dispatcher, close } = createConnections({ url, connections }, host.createDispatcher);
  const sessions = sessionsOf(url, upstreams.main?.url);
  const forwardRequest = createForwardRequest(
    { url, readOnly: false, writeAgent, writeTimeoutMs, sessions },
    host,
  );
  return {
    handlers: ({ withBody }) => ({
      reverseLookup: createForward(host, withBody, forwardRequest),
    }),
    search: createReverseLookup(settings, pseudonym, dispatcher),
    close,
  };
}

/** Client for a reverse lookup service (HRLS), which finds handles by value. */
function createReverseLookup(
  { reverseLookup: { url = '', forwardLogin }, upstream: { timeoutMs, maxBodyBytes } }: ReverseLookupConfig,
  pseudonym: string,
  dispatcher: UpstreamDispatcher,
): SearchService {
  const { origin, basePath } = parseAddress(url);
  async function find({ prefix, conditions, limit, ...given }: SearchQuery) {
    const query = [...conditions, ['limit', String(limit)] as const]
      .map((pair) => pair.map(encodeURIComponent).join('='))
      .join('&');
    const path = `${basePath}/hrls/handles/${encodeURIComponent(prefix)}?${query}`;
    const authorization = forwardLogin ? given.authorization : undefined;
    const headers = requestHeaders({ pseudonym, authorization });
    try {
      const request = { origin, method: 'GET' as const, path, headers };
      const found = readHandles(await exchange(dispatcher, request, { timeoutMs, maxBodyBytes }));
      if (typeof found === 'string' && !forwardLogin) throw loginMissing();
      return found;
    } catch (error) {
      throw asLookupFailure(toServiceError(error));
    }
  }
  return { forwardsLogin: forwardLogin, find };
}

const loginMissing = (): ServiceError =>
  new ServiceError('UPSTREAM_INVALID_RESPONSE', {
    diagnosis: {
      cause: 'it requires a login',
      remedy: 'set reverseLookup.forwardLogin if it knows the logins of the Handle server',
    },
  });

function readHandles(response: UpstreamResponse): string[] | 'unauthorized' | 'forbidden' {
  if (response.status === 401) return 'unauthorized';
  if (response.status === 403) return 'forbidden';
  const handles = response.status === 200 ? parsedAnswer(response.body) : undefined;
  const isList = Array.isArray(handles) && handles.every((handle) => typeof handle === 'string');
  if (!isList) throw invalidResponse('no list of handles', response);
  return handles;
}

function parsedAnswer(json: string): unknown {
  try {
    return parseJson(json);
  } catch {
    return undefined;
  }
}

/** Names the reverse lookup service in the message, so that operators do not check the Handle server. */
const asLookupFailure = (failure: ServiceError): ServiceError =>
  new ServiceError(failure, {
    message: failure.message.replace('The Handle server', 'The reverse lookup service'),
    diagnosis: explainServerFailure(failure, KEYS),
    cause: failure,
  });
