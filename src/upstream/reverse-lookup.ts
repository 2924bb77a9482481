// Asks a reverse look-up service (HRLS) which handles hold a value.
import type { Dispatcher } from 'undici';
import { ServiceError } from '../errors.js';
import { parseJson } from '../handle/json.js';
import { badAnswer } from './invalid-response.js';
import { readBody } from './body.js';
import { toServiceError } from './failure.js';
import { withSignal } from './time-limit.js';

export interface ReverseLookupOptions {
  url: string;
  pseudonym: string;
  timeoutMs: number;
  maxBodyBytes: number;
  dispatcher: Dispatcher;
}

export interface LookupQuestion {
  prefix: string;
  /** Type and pattern of each value a handle must have. */
  conditions: readonly (readonly [type: string, pattern: string])[];
  limit: number;
  /** As the client sent it: such a service has logins of its own. */
  authorization?: string | undefined;
}

/** The handles, `'unauthorized'`, or a ServiceError. */
export type ReverseLookup = (question: LookupQuestion) => Promise<string[] | 'unauthorized' | 'forbidden'>;

export function createReverseLookup(options: ReverseLookupOptions): ReverseLookup {
  return async function reverseLookup({ prefix, conditions, limit, authorization }) {
    // fetch folds these away, in any spelling: another path would be asked (WHATWG URL, "double-dot URL path segment").
    if (prefix === '.' || prefix === '..') {
      throw new ServiceError('BAD_PATH', { message: `There is no prefix ${prefix}` });
    }
    const query = [...conditions, ['limit', String(limit)] as const]
      .map((pair) => pair.map(encodeURIComponent).join('='))
      .join('&');
    const url = `${options.url}/hrls/handles/${encodeURIComponent(prefix)}?${query}`;
    const init = {
      headers: {
        accept: 'application/json',
        'user-agent': 'handle-resolver-proxy',
        via: `1.1 ${options.pseudonym}`,
        ...(authorization === undefined ? {} : { authorization }),
      },
      redirect: 'manual',
      dispatcher: options.dispatcher,
    } as unknown as RequestInit;
    try {
      return await withSignal({ timeoutMs: options.timeoutMs }, async (signal) => {
        const response = await globalThis.fetch(url, { ...init, signal });
        const { status, headers } = response;
        return readHandles({ status, headers, body: await readBody(response, options.maxBodyBytes) });
      });
    } catch (error) {
      throw asLookupFailure(toServiceError(error));
    }
  };
}

interface Arrived {
  status: number;
  headers: Pick<Headers, 'get'>;
  body: string;
}

function readHandles(arrived: Arrived): string[] | 'unauthorized' | 'forbidden' {
  if (arrived.status === 401) return 'unauthorized';
  if (arrived.status === 403) return 'forbidden';
  const handles = arrived.status === 200 ? parsed(arrived.body) : undefined;
  const isList = Array.isArray(handles) && handles.every((handle) => typeof handle === 'string');
  if (!isList) throw badAnswer('no list of handles', arrived);
  return handles;
}

function parsed(json: string): unknown {
  try {
    return parseJson(json);
  } catch {
    return undefined;
  }
}

/** So that nobody looks for the fault at the Handle server. */
const asLookupFailure = (failure: ServiceError): ServiceError =>
  new ServiceError(failure.code, {
    message: failure.message.replace('The Handle server', 'The reverse look-up service'),
    cause: failure,
  });
