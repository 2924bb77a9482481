// Determines client addresses, including those behind trusted proxies.
import type { IncomingMessage } from 'node:http';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import proxyAddr from 'proxy-addr';
import type { Live } from '../config/live.js';
import type { Context } from '../context.js';
import type { Client, ClientAddress } from './context.js';

export type IsTrustedProxy = (address: string) => boolean;

/** Compiles a list of proxies with the same library as Express. */
export const compileTrust = (proxies: readonly string[]): IsTrustedProxy => proxyAddr.compile([...proxies]);

/** Compiles `http.trustedProxies`, which a reload may change. */
export function createProxyTrust(
  settings: Live<{ http: { trustedProxies: readonly string[] } }>,
): IsTrustedProxy {
  const trust = settings.derive(({ http }) => compileTrust(http.trustedProxies));
  return (address) => trust.current(address);
}

/** Maximum forwarded addresses to read, far more than any real request has. */
const MAX_HOPS = 100;

/** Returns the nearest untrusted address in front of a trusted peer: any client can forge the addresses further left. */
function forwardedAddress(req: IncomingMessage, peer: string, isTrusted: IsTrustedProxy): string {
  let address = peer;
  // Scans from the right up to the first untrusted address, ignoring the rest.
  const forwarded = forwardedList(req, 'for');
  const hops = Math.min(forwarded.length, MAX_HOPS);
  for (let hop = 1; hop <= hops; hop++) {
    // An element of `Forwarded` without `for` has an unknown client (RFC 7239 §6.2).
    address = withoutPort(forwarded.at(-hop) ?? '') || 'unknown';
    if (!isTrusted(address)) return address;
  }
  return address;
}

/**
 * Lists a property of each hop in `X-Forwarded-…`, nearest last, or in `Forwarded` (RFC 7239 §4) if no proxy sent
 * `X-Forwarded-For`. Omits empty elements (RFC 9110 §5.6.1.2).
 */
export function forwardedList({ headers }: IncomingMessage, property: 'for' | 'proto' | 'host'): string[] {
  const { forwarded } = headers;
  if (forwarded === undefined || headers['x-forwarded-for'] !== undefined) {
    const list = headers[`x-forwarded-${property}`]?.toString().split(',') ?? [];
    return list.map((element) => element.trim()).filter((element) => element !== '');
  }
  const elements = forwarded.match(FORWARDED_ELEMENTS) ?? [];
  return elements
    .filter((element) => element.trim() !== '')
    .map((element) => forwardedProperty(element, property));
}

// An open quoted string ends with the header, so that no text is scanned twice.
const FORWARDED_ELEMENTS = /(?:"(?:[^"\\]|\\.)*(?:"|\\?$)|[^",])+/g;
const FORWARDED_PAIRS = /([\w-]{1,16})=(?:"((?:[^"\\]|\\.)*)(?:"|\\?$)|([^\s";]*))/g;

/** Returns the property of an element of `Forwarded`; empty if it is missing. */
function forwardedProperty(element: string, property: string): string {
  for (const [, name = '', quoted, token] of element.matchAll(FORWARDED_PAIRS))
    if (name.toLowerCase() === property) return quoted ?? token ?? '';
  return '';
}

/** Returns the client of a request, even behind trusted proxies. */
export type FindClient = (req: IncomingMessage) => Client;

/** Warns once, and once after each reload, if a peer that is no trusted proxy sends `X-Forwarded-For` or `Forwarded`. */
export function createFindClient(
  isTrusted: IsTrustedProxy,
  { log }: Context,
  settings: Live<unknown>,
): FindClient {
  let hasWarned = false;
  // The operator may have named another proxy that is not the peer.
  settings.onReload(() => {
    hasWarned = false;
  });
  return function findClient(req) {
    // A disconnected client has no address (RFC 7239 §6.2).
    const { remoteAddress = '' } = req.socket;
    const peer = { address: remoteAddress || 'unknown', isTrusted: isTrusted(remoteAddress) };
    const given = peer.isTrusted ? forwardedAddress(req, remoteAddress, isTrusted) : remoteAddress;
    const { address, network, isLocal } = clientAt(given);
    if (!hasWarned && isClaimIgnored(req, peer)) {
      hasWarned = true;
      log.warn({ peer: address, remedy: CLAIM_REMEDY }, 'forwarded client address ignored');
    }
    return { address, network, isLocal, peer };
  };
}

const CLAIM_REMEDY =
  'if the peer is your web server, name it in http.trustedProxies; otherwise limits count it as the client';

const isClaimIgnored = ({ headers }: IncomingMessage, { isTrusted }: Client['peer']): boolean =>
  (headers['x-forwarded-for'] ?? headers.forwarded) !== undefined && !isTrusted;

/** Strips the port that some proxies append (RFC 7239 §6): `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const address = text.trim();
  const [, v6, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?$/.exec(address) ?? [];
  return v6 ?? v4 ?? address;
}

/** Converts an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2) to IPv4. */
export const plainAddress = (address: string): string =>
  /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;

/** Returns the client at an address, as the socket or a proxy names it. */
export function clientAt(given: string): ClientAddress {
  const address = plainAddress(given);
  if (!isIPv4(address)) return { address, network: clientOf(address), isLocal: address === '::1' };
  const network = `${address.slice(0, address.lastIndexOf('.'))}.0/24`;
  return { address, network, isLocal: address.startsWith('127.') };
}

/** Identifies a client by IPv4 address or by IPv6 /56 network, because an IPv6 client has many addresses. */
export const clientOf = (address: string): string =>
  address.includes(':') && isIPv6(address) ? v6Network(address) : address;

/** Returns an address's network: IPv4 /24 or IPv6 /56. */
export const networkOf = (address: string): string => clientAt(address).network;

/** Parses an address or `<address>/<bits>` to its network; undefined for any other text. */
export function networkNamed(text: string): string | undefined {
  const [given = '', bits, ...more] = text.split('/');
  const { address, network } = clientAt(given);
  if (isIP(address) === 0 || more.length > 0) return undefined;
  return bits === undefined || network.endsWith(`/${bits}`) ? network : undefined;
}

function v6Network(address: string): string {
  const [head = '', tail = ''] = address.split('::', 2);
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const missing = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array<string>(Math.max(0, missing)).fill('0'), ...groups(tail)];
  const [a, b, c, d = 0] = all.map((group) => parseInt(group, 16));
  return `${[a, b, c, d & 0xff00].map((group) => (group ?? 0).toString(16)).join(':')}::/56`;
}
