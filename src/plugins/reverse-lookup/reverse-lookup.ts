// Forwards requests to the reverse lookup service, and asks it for searches.
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { ServiceError } from '../../errors.js';
import type { SearchQuery, SearchService } from '../../hooks.js';
import type { Steps } from '../../time-slicer.js';
import { ConcurrencyLimiter, limitLists } from '../../upstream/concurrency-limiter.js';
import { createConnections } from '../../upstream/connections.js';
import { type UpstreamDispatcher, exchange, parseAddress, requestHeaders } from '../../upstream/exchange.js';
import { explainServerFailure, toServiceError } from '../../upstream/failure.js';
import { createForwardRequest, limitForwards } from '../../upstream/forwarding/forward-request.js';
import { readInSlices } from '../../upstream/reply.js';
import { type UpstreamResponse, invalidResponse, parseList } from '../../upstream/response.js';
import { sessionsOf } from '../../upstream/sessions.js';
import { type ReverseLookupConfig, KEYS } from './plugin.js';

export function start(host: Host, settings: ReverseLookupConfig): Started {
  const { url = '' } = settings.reverseLookup;
  const { writeTimeoutMs, connections } = settings.upstream;
  const { pseudonym, upstreams } = host;
  const { writeAgent, dispatcher, close } = createConnections({ url, connections }, host.createDispatcher);
  const sessions = sessionsOf(url, upstreams.main?.url);
  const access = { pseudonym, writeAgent, sessions };
  const forwardRequest = limitForwards(
    createForwardRequest({ url, readOnly: false, writeTimeoutMs }, access),
    new ConcurrencyLimiter({ ...settings.upstream, minConcurrency: settings.upstream.concurrency }),
  );
  return {
    handlers: ({ forward }) => ({
      async reverseLookup(req, res, context) {
        try {
          await forward(req, res, context, { forward: forwardRequest });
        } catch (error) {
          throw error instanceof ServiceError && !error.rejectsClient ? asLookupFailure(error) : error;
        }
      },
    }),
    search: createReverseLookup(settings, host, dispatcher),
    close,
  };
}

/** Client for a reverse lookup service (HRLS), which finds handles by value. */
function createReverseLookup(
  { reverseLookup: { url = '', forwardLogin }, upstream }: ReverseLookupConfig,
  { pseudonym, slicer }: Host,
  dispatcher: UpstreamDispatcher,
): SearchService {
  const { origin, basePath } = parseAddress(url);
  const { timeoutMs, maxBodyBytes } = upstream;
  const limiter = new ConcurrencyLimiter(limitLists(upstream));
  async function find({ prefix, conditions, limit, caller, ...given }: SearchQuery) {
    const query = [...conditions, ['limit', String(limit)] as const]
      .map((pair) => pair.map(encodeURIComponent).join('='))
      .join('&');
    const path = `${basePath}/hrls/handles/${encodeURIComponent(prefix)}?${query}`;
    const authorization = forwardLogin ? given.authorization : undefined;
    const headers = requestHeaders({ pseudonym, authorization });
    try {
      const request = { origin, method: 'GET' as const, path, headers };
      const read = async (): Promise<string[] | LoginRefusal> => {
        const response = await exchange(dispatcher, request, { timeoutMs, maxBodyBytes });
        return readInSlices(slicer, readHandles(response), { chars: response.body.length, caller });
      };
      const found = await limiter.run(read, { caller });
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

type LoginRefusal = 'unauthorized' | 'forbidden';

const REMEDY = 'check that reverseLookup.url is the address of a reverse lookup service';

function* readHandles(response: UpstreamResponse): Steps<string[] | LoginRefusal> {
  const { status } = response;
  if (status === 401) return 'unauthorized';
  if (status === 403) return 'forbidden';
  const invalid = invalidResponse('no list of handles', response, { remedy: REMEDY });
  if (status !== 200) throw invalid;
  const { texts, rest } = yield* parseList(response, REMEDY);
  if (rest.trim() === '[]') return texts;
  throw invalid;
}

/** Names the reverse lookup service, so that operators do not check the Handle server. */
function asLookupFailure(failure: ServiceError): ServiceError {
  const { code, status, responseCode, title, message, retryAfterSeconds } = failure;
  const retryAfterMs = retryAfterSeconds && 1000 * retryAfterSeconds;
  return new ServiceError(
    { code, status, responseCode, title: named(title) },
    { message: named(message), diagnosis: explainServerFailure(failure, KEYS), retryAfterMs, cause: failure },
  );
}

const named = (text: string): string =>
  text.replace(/\b(t)he Handle server\b/i, '$1he reverse lookup service');
