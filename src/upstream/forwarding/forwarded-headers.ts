// The headers of a forwarded request: new framing, no hop-by-hop headers, no `X-Forwarded-…` from untrusted
// clients; and the end-to-end headers of its response.
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { isIPv6 } from 'node:net';
import type { ClientPeer } from '../contract.js';
import type { Sessions } from '../sessions.js';

/** Hop-by-hop headers (RFC 9110 §7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers that are computed here, or handled by this server (`Expect`). */
const OURS: ReadonlySet<string> = new Set(['content-length', 'expect', 'host', 'via', 'x-request-id']);

/** Headers that make a gateway execute a different request than the request checked here. */
const OVERRIDES: ReadonlySet<string> = new Set([
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-uri',
  'x-original-url',
  'x-rewrite-url',
]);

/** Headers by which gateways describe their client to the servers behind them, like `X-Forwarded-…`. */
const CLIENT_CLAIMS: ReadonlySet<string> = new Set([
  'cf-connecting-ip',
  'client-cert',
  'client-cert-chain',
  'fastly-client-ip',
  'forwarded',
  'proxy-auth-cert',
  'proxy-ssl-id',
  'true-client-ip',
  'x-client-cert',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-proxied-https',
  'x-real-ip',
  'x-ssl-client-cert',
]);

/** Headers that `Connection` must not remove, because their removal changes the request (RFC 9110 §7.6.1). */
const CREDENTIALS: ReadonlySet<string> = new Set(['authorization', 'cookie']);

/** Methods that need Content-Length even without a body (RFC 9110 §8.6). */
const WITH_LENGTH: ReadonlySet<string> = new Set(['PUT', 'POST']);

export interface ClientRequestHead {
  method: string;
  httpVersion: string;
  headers: IncomingHttpHeaders;
  peer: ClientPeer;
}

interface Hop {
  /** Host and port of the upstream server. */
  host: string;
  /** Name of this proxy in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
  bodyBytes: number;
  /** Whether the server receives `Authorization` and `Cookie`. */
  withCredentials: boolean;
  /** The request id that this proxy logs; an id sent by an untrusted client may be forged. */
  requestId: string;
}

export function forwardedHeaders(client: ClientRequestHead, hop: Hop): OutgoingHttpHeaders {
  const { method, headers } = client;
  const hasLength = hop.bodyBytes > 0 || WITH_LENGTH.has(method);
  return {
    ...endToEndHeaders(client, hop),
    ...forwardingHeaders(client),
    host: hop.host,
    'x-request-id': hop.requestId,
    via: appended(headers.via, `${client.httpVersion} ${hop.pseudonym}`),
    ...(hasLength && { 'content-length': String(hop.bodyBytes) }),
  };
}

function endToEndHeaders(
  { headers, peer }: ClientRequestHead,
  { withCredentials }: Hop,
): OutgoingHttpHeaders {
  const named = connectionOptions(headers);
  const isDropped = (name: string): boolean =>
    HOP_BY_HOP.has(name) ||
    OURS.has(name) ||
    OVERRIDES.has(name) ||
    (!withCredentials && CREDENTIALS.has(name)) ||
    (!peer.isTrusted && isClientClaim(name)) ||
    (named.has(name) && !CREDENTIALS.has(name));
  // Servers that map headers to variables (RFC 3875 §4.1.18) do not distinguish `_` and `-`.
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name, value]) =>
        value !== undefined &&
        !isDropped(name) &&
        !(name.includes('_') && isDropped(name.replaceAll('_', '-'))),
    ),
  );
}

/** Returns the end-to-end headers of a response, with marked session ids, as alternating names and values. */
export function endToEndLines({ rawHeaders, headers }: IncomingMessage, { challengeOf }: Sessions): string[] {
  const named = connectionOptions(headers);
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at], rawHeaders[at + 1]];
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || named.has(lower)) continue;
    kept.push(name, lower === 'www-authenticate' ? challengeOf(value) : value);
  }
  return kept;
}

/** Returns the header names listed in `Connection`, in lower case. */
const connectionOptions = ({ connection = '' }: IncomingHttpHeaders): ReadonlySet<string> =>
  new Set(connection.split(',').map((name) => name.trim().toLowerCase()));

const isClientClaim = (name: string): boolean => name.startsWith('x-forwarded-') || CLIENT_CLAIMS.has(name);

/** Extends a trusted proxy's `X-Forwarded-…` lists, and its `Forwarded`, by this hop; keeps its `X-Forwarded-Host`. */
function forwardingHeaders({ headers, peer }: ClientRequestHead): OutgoingHttpHeaders {
  const { host } = headers;
  const before: IncomingHttpHeaders = peer.isTrusted ? headers : {};
  const chain = (name: string, ours: string): string => appended(before[name]?.toString(), ours);
  const forwardedHost = before['x-forwarded-host'] ?? host;
  return {
    'x-forwarded-for': chain('x-forwarded-for', peer.address),
    'x-forwarded-port': chain('x-forwarded-port', /:(\d+)$/.exec(host ?? '')?.[1] ?? '80'),
    // The public listener accepts only plain HTTP.
    'x-forwarded-proto': chain('x-forwarded-proto', 'http'),
    ...(forwardedHost !== undefined && { 'x-forwarded-host': forwardedHost }),
    ...(before.forwarded !== undefined && {
      forwarded: appended(before.forwarded, forwardedFor(peer.address)),
    }),
  };
}

/** Formats an element of `Forwarded`, in which an IPv6 address has brackets and quotes (RFC 7239 §6). */
const forwardedFor = (address: string): string => `for=${isIPv6(address) ? `"[${address}]"` : address}`;

const appended = (before: string | undefined, last: string): string =>
  before === undefined ? last : `${before}, ${last}`;
