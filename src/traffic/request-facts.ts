// What the traffic rules look at in an HTTP request.
import type { IncomingMessage } from 'node:http';
import type { InterfaceName } from '../config/schema-traffic.js';
import { handleInUrl } from '../handle/handle-in-url.js';
import { parseHandle } from '../handle/handle.js';
import { readParameters } from '../http/query.js';
import { type Interface, type RouteMatch, type RouteTable, routeFor } from '../http/route-table.js';
import { ownerOf, readTarget } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import type { RequestFacts } from './rule.js';

interface FactsDeps {
  addressOf: (req: IncomingMessage) => string;
  resolver: Pick<Resolver<unknown>, 'fromMemory'>;
  table: RouteTable;
}

export function createReadFacts({
  addressOf,
  resolver,
  table,
}: FactsDeps): (req: IncomingMessage) => RequestFacts {
  /** Whether memory answers an anonymous read of a handle now. */
  const isFresh = (handle: string): boolean => resolver.fromMemory(handle) !== undefined;

  return function readFacts(req) {
    const { method = '', headers } = req;
    const named = nameOf(req, table);
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

function nameOf(req: IncomingMessage, table: RouteTable): NamedByTarget {
  const target = readTarget(req.url ?? '');
  const parameters = readParameters(target.query);
  const match = table.at(target.path);
  const route = match && routeFor(match, req, target);
  const prefix = route?.interface === 'list' ? parameters.get('prefix') : null;
  return {
    ...(prefix === null
      ? handleAt(target.path, route?.interface ?? ownerOf(target.path), match)
      : { interface: 'list', handle: `${prefix}/` }),
    isBatch: route?.interface === 'batch',
    isAuthoritative: parameters.has('auth') || parameters.has('cert'),
  };
}

function handleAt(
  path: string,
  of: Interface,
  match: RouteMatch | undefined,
): Pick<NamedByTarget, 'interface' | 'handle'> {
  const { rest = '', routes: [route] = [] } = match ?? {};
  switch (of) {
    case 'native':
      // A message names its handle itself.
      return { interface: 'native', handle: undefined };
    case 'v2':
      return { interface: 'v2', handle: decode(rest) };
    case 'redirect': {
      const decoded = decode(path);
      return { interface: 'redirect', handle: decoded && handleInUrl(decoded) };
    }
    default:
      return { interface: 'record', handle: route?.path.endsWith('{handle}') ? decode(rest) : undefined };
  }
}

function decode(rawHandle: string): string | undefined {
  const parsed = parseHandle(rawHandle);
  return parsed.ok ? parsed.handle : undefined;
}

/** Reads with credentials, authoritative ones, lists and batches count as misses: the Handle server is asked. */
function readsOf(
  facts: NamedByTarget & Pick<RequestFacts, 'method' | 'credentials'>,
  isFresh: (handle: string) => boolean,
): RequestFacts['reads'] {
  if (facts.isBatch) return 'misses';
  if (facts.method !== 'GET' && facts.method !== 'HEAD') return undefined;
  if (facts.credentials !== undefined || facts.isAuthoritative || facts.interface === 'list') return 'misses';
  return facts.handle !== undefined && isFresh(facts.handle) ? 'hits' : 'misses';
}
