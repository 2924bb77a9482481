// What the traffic rules look at in an HTTP request.
import type { IncomingMessage } from 'node:http';
import type { InterfaceName } from '../config/schema-traffic.js';
import { handleInUrl } from '../handle/handle-in-url.js';
import { parseHandle } from '../handle/handle.js';
import { readParameters } from '../http/query.js';
import { rawHandleOf, readTarget } from '../http/target.js';
import type { RequestFacts } from './rule.js';

interface FactsDeps {
  addressOf: (req: IncomingMessage) => string;
  /** Whether memory answers an anonymous read of a handle now. */
  isFresh: (handle: string) => boolean;
  /** Whether the body is a native message, which names its handle itself. */
  isNative: (req: IncomingMessage) => boolean;
}

export type ReadFacts = (req: IncomingMessage) => RequestFacts;

export function createReadFacts({ addressOf, isFresh, isNative }: FactsDeps): ReadFacts {
  return function readFacts(req) {
    const { method = '', headers, url = '' } = req;
    const named = nameOf(url, method === 'POST' && isNative(req));
    const facts = {
      address: addressOf(req),
      userAgent: headers['user-agent'] ?? '',
      method,
      credentials: headers.authorization,
      interface: named.interface,
      handle: named.handle,
    };
    return { ...facts, reads: readsOf({ ...facts, ...named }, isFresh) };
  };
}

interface NamedByTarget {
  interface: InterfaceName;
  handle: string | undefined;
  /** Many handles in one request. */
  isBatch: boolean;
  isAuthoritative: boolean;
}

const V2 = '/api/v2/handles/';

function nameOf(url: string, isNative: boolean): NamedByTarget {
  const { path, query } = readTarget(url);
  const parameters = readParameters(query);
  return {
    ...interfaceOf(path, { isNative, prefix: parameters.get('prefix') }),
    isBatch: path.startsWith('/api/resolve') || (rawHandleOf(path) === '' && parameters.has('handle')),
    isAuthoritative: parameters.has('auth') || parameters.has('cert'),
  };
}

function interfaceOf(
  path: string,
  { isNative, prefix }: { isNative: boolean; prefix: string | null },
): Pick<NamedByTarget, 'interface' | 'handle'> {
  const rawHandle = rawHandleOf(path);
  if (rawHandle === '' && prefix !== null) return { interface: 'list', handle: `${prefix}/` };
  if (rawHandle !== undefined) return { interface: 'record', handle: decode(rawHandle) };
  if (path.startsWith(V2)) return { interface: 'v2', handle: decode(path.slice(V2.length)) };
  if (path.startsWith('/api/v2')) return { interface: 'v2', handle: undefined };
  if (/^\/(?:api|hrls)(?:\/|$)/i.test(path)) return { interface: 'record', handle: undefined };
  if (isNative) return { interface: 'native', handle: undefined };
  const decoded = decode(path);
  return { interface: 'redirect', handle: decoded && handleInUrl(decoded) };
}

function decode(rawHandle: string): string | undefined {
  const parsed = parseHandle(rawHandle);
  return parsed.ok ? parsed.handle : undefined;
}

/** Reads with credentials, authoritative ones, lists and batches count as misses: the Handle server is asked. */
function readsOf(
  facts: NamedByTarget & Pick<RequestFacts, 'method' | 'credentials'>,
  isFresh: FactsDeps['isFresh'],
): RequestFacts['reads'] {
  if (facts.isBatch) return 'misses';
  if (facts.method !== 'GET' && facts.method !== 'HEAD') return undefined;
  if (facts.credentials !== undefined || facts.isAuthoritative || facts.interface === 'list') return 'misses';
  return facts.handle !== undefined && isFresh(facts.handle) ? 'hits' : 'misses';
}
