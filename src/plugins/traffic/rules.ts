// Compiles the configured rules, and reads the request facts that they match.
import type { InterfaceName, TrafficRule } from './schema.js';
import type { IncomingMessage } from 'node:http';
import { type HandleRef, compileGlobs, handleInUrl, parseHandle, upperAscii } from '../../handle/handle.js';
import type { RequestContext } from '../../http/context.js';
import { type Interface, restOf } from '../../http/route-table.js';
import { ownerOf } from '../../http/target.js';
import type { Resolver } from '../../resolver/resolver.js';
import { BlockList, isIPv6 } from 'node:net';

/** The request facts that rules match. */
export interface TrafficFacts {
  address: string;
  userAgent: string;
  method: string;
  interface: InterfaceName;
  handle: HandleRef | undefined;
  /** Value of the Authorization header. */
  credentials: string | undefined;
  /** Whether a read hits in memory, or may need the Handle server; undefined for a write. */
  reads: 'hits' | 'misses' | undefined;
}

export const isOfHandles = ({ match }: TrafficRule): boolean =>
  match.handle !== undefined || match.prefix !== undefined;

/**
 * Whether a rule affects hits. A class alone does not, because it orders waiting requests, and hits never
 * wait.
 */
export const concernsHits = ({ match, limit, answer, log, shadow, robot }: TrafficRule): boolean =>
  match.reads !== 'misses' && (limit !== undefined || answer !== undefined || log || shadow || robot);

export function createReadFacts(
  resolver: Resolver,
): (req: IncomingMessage, place: RequestContext, address: string) => TrafficFacts {
  /** Whether an anonymous read of the handle would hit in memory now. */
  const isFresh = (handle: HandleRef): boolean => resolver.fromMemory(handle) !== undefined;

  return function readFacts(req, place, address) {
    const { method = '', headers } = req;
    const named = handleName(place);
    const facts: TrafficFacts = {
      address,
      userAgent: headers['user-agent'] ?? '',
      method,
      credentials: headers.authorization,
      interface: named.interface,
      handle: named.handle === undefined ? undefined : resolver.refOf(named.handle),
      reads: undefined,
    };
    return { ...facts, reads: readsOf(named, facts, isFresh) };
  };
}

interface NamedHandle {
  interface: InterfaceName;
  handle: string | undefined;
}

interface NamedByTarget extends NamedHandle {
  /** Whether the request names many handles. */
  isBatch: boolean;
  isAuthoritative: boolean;
}

function handleName(place: RequestContext): NamedByTarget {
  const { target, route, parameters } = place;
  const prefix = route?.interface === 'list' ? parameters.get('prefix') : null;
  return {
    ...(prefix === null
      ? handleAt(place, route?.interface ?? ownerOf(target.path))
      : { interface: 'list', handle: `${prefix}/` }),
    isBatch: route?.interface === 'batch',
    isAuthoritative: parameters.has('auth') || parameters.has('cert'),
  };
}

function handleAt(place: RequestContext, of: Interface): NamedHandle {
  const { routes: [route] = [] } = place.match ?? {};
  switch (of) {
    case 'native':
      // The handle is in the message body.
      return { interface: 'native', handle: undefined };
    case 'v2':
      return { interface: 'v2', handle: decodePath(restOf(place)) };
    case 'redirect': {
      const decoded = decodePath(place.target.path);
      return { interface: 'redirect', handle: decoded && handleInUrl(decoded) };
    }
    default:
      return {
        interface: 'record',
        handle: route?.path.endsWith('{handle}') ? decodePath(restOf(place)) : undefined,
      };
  }
}

function decodePath(rawHandle: string): string | undefined {
  const parsed = parseHandle(rawHandle);
  return parsed.ok ? parsed.handle : undefined;
}

/**
 * Classifies a read. Reads with credentials, authoritative reads and lists count as misses, because they go
 * to the Handle server, and so do batches, because any of their handles may need it.
 */
function readsOf(
  named: NamedByTarget,
  facts: TrafficFacts,
  isFresh: (handle: HandleRef) => boolean,
): TrafficFacts['reads'] {
  if (named.isBatch) return 'misses';
  if (facts.method !== 'GET' && facts.method !== 'HEAD') return undefined;
  if (facts.credentials !== undefined || named.isAuthoritative || facts.interface === 'list') return 'misses';
  return facts.handle !== undefined && isFresh(facts.handle) ? 'hits' : 'misses';
}

export type Matches = (facts: TrafficFacts) => boolean;

/** Compiles the conditions of a rule, cheapest first. */
export function compileMatch(match: TrafficRule['match']): Matches {
  const parts = [
    match.reads && ((facts: TrafficFacts) => facts.reads === match.reads),
    match.method && matchesOne(match.method, ({ method }) => method),
    match.interface && matchesOne(match.interface, (facts) => facts.interface),
    match.credentials !== undefined &&
      ((facts: TrafficFacts) => (facts.credentials !== undefined) === match.credentials),
    match.prefix && matchPrefix(match.prefix),
    match.handle && matchText(match.handle, ({ handle }) => handle?.text),
    match.userAgent && matchText(match.userAgent, ({ userAgent }) => userAgent),
    match.network && matchNetwork(match.network),
  ].filter((part) => typeof part === 'function');
  return (facts) => parts.every((part) => part(facts));
}

function matchesOne(allowed: readonly string[], read: (facts: TrafficFacts) => string): Matches {
  const set = new Set(allowed);
  return (facts) => set.has(read(facts));
}

function matchNetwork(networks: readonly string[]): Matches {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family);
  }
  return ({ address }) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

/** Matches a prefix: `21.T1`, or `21.T1.*` for its derived prefixes. */
function matchPrefix(prefixes: readonly string[]): Matches {
  const folded = prefixes.map(upperAscii);
  const isOf = (prefix: string, pattern: string): boolean =>
    pattern.endsWith('.*') ? prefix.startsWith(pattern.slice(0, -1)) : prefix === pattern;
  return ({ handle }) => {
    if (handle?.text.includes('/') !== true) return false;
    return folded.some((pattern) => isOf(handle.prefix, pattern));
  };
}

function matchText(patterns: readonly string[], read: (facts: TrafficFacts) => string | undefined): Matches {
  const matches = compileGlobs(patterns);
  return (facts) => {
    const text = read(facts);
    return text !== undefined && matches(text);
  };
}
