// Parses addresses in the configuration: URLs, Redis nodes, certificate fingerprints, networks and loopback; writes logins.
import { tryDecode } from '../handle/bytes.js';
import { withoutSlashesAtEnd } from '../handle/handle.js';
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

export function parseHttpUrl(text: string): URL | undefined {
  const url = parseUrl(text);
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}

/** Parses an http(s) base URL and strips trailing slashes; returns undefined for any other URL. */
export function readBaseUrl(text: string): string | undefined {
  const url = parseHttpUrl(text);
  return url && !/[?#@]/.test(text) ? url.origin + withoutSlashesAtEnd(url.pathname) : undefined;
}

/** Normalises an address, or a `{handle}` template: its host has none, so no handle chooses a server. */
export function readServerAddress(text: string): string | undefined {
  if (!text.includes('{')) return readBaseUrl(text);
  const isTemplate = /^https?:\/\/[^/?#@{}]+\/[\x21-\x7e]*$/.test(text);
  return isTemplate && parseHttpUrl(text) !== undefined ? text : undefined;
}

/** Parses an http(s) URL without a path, query or credentials; returns undefined for any other URL. */
export const readOrigin = (text: string): string | undefined =>
  parseHttpUrl(text)?.pathname === '/' ? readBaseUrl(text) : undefined;

/** Normalises an http(s) URL; returns undefined for any other URL. */
export const readWebUrl = (text: string): string | undefined => parseHttpUrl(text)?.href;

/** Normalises an http(s) URL, or a mailto: URL with one address; returns undefined for any other URL. */
export const readLinkUrl = (text: string): string | undefined =>
  /^mailto:[^\s@:?]+@[^\s@:?]+(\?\S*)?$/i.test(text) ? parseUrl(text)?.href : readWebUrl(text);

/** Returns a redis(s) URL unchanged; undefined for one with a query or a path that would be ignored. */
export function readRedisUrl(text: string): string | undefined {
  const url = parseUrl(text);
  if (url === undefined || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '')
    return undefined;
  const isComplete = /^(\/\d{0,5})?$/.test(url.pathname) && !/[?#]/.test(text);
  return isComplete && hasValidLogin(url) ? text : undefined;
}

/** Whether the percent-encoding of user and password is valid. */
export const hasValidLogin = ({ username, password }: URL): boolean =>
  tryDecode(decodeURIComponent, `${username}:${password}`) !== undefined;

/** Converts a Sentinel or Cluster node to a URL; also accepts `host:port`. */
export function readRedisNode(text: string): string | undefined {
  const isBare = /^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(text);
  return readRedisUrl(isBare ? `redis://${text}` : text);
}

export function readFingerprints(text: string): string | undefined {
  const read = text.split(',').map((one) => readFingerprint(one.trim()));
  return read.every((one) => one !== undefined) ? read.join(',') : undefined;
}

/** Normalises a SHA-256 certificate fingerprint to the node:tls format, `AB:CD:…`. */
function readFingerprint(text: string): string | undefined {
  const digits = text.replaceAll(':', '').toUpperCase();
  const isFingerprint = /^([0-9A-F]{64}|([0-9A-F]{2}:){31}[0-9A-F]{2})$/i.test(text);
  return isFingerprint ? (digits.match(/../g) ?? []).join(':') : undefined;
}

/** Validates a pattern of handles. A pattern without a slash, unless it begins with `*`, matches no handle. */
export const readHandlePattern = (text: string): string | undefined =>
  !/\s/.test(text) && (text.startsWith('*') || text.includes('/')) ? text : undefined;

/** Named networks that Express accepts. */
const NETWORKS = ['loopback', 'linklocal', 'uniquelocal'];

/** Validates an address or network, except one of all addresses: any client could claim any address. */
export const readNetwork = (text: string): string | undefined =>
  NETWORKS.includes(text) || (parseNetwork(text)?.bits ?? 0) > 0 ? text : undefined;

function parseNetwork(text: string) {
  const [, address = '', given] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  const most = version === 4 ? 32 : 128;
  const bits = Number(given ?? most);
  if (version === 0 || bits > most) return undefined;
  return { address, family: version === 4 ? 'ipv4' : 'ipv6', bits } as const;
}

/** Creates the function that finds whether an address is in one of the networks. Ignores texts that are no network. */
export function createNetworkTest(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const { address, family, bits } of networks.flatMap((text) => parseNetwork(text) ?? []))
    list.addSubnet(address, bits, family);
  return (address) => list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}

const isLoopbackV6 = createNetworkTest(['::1', '127.0.0.0/8']);

/** Whether a host is a loopback address or `localhost` (RFC 6761 §6.3); other names may resolve anywhere. */
export function isLoopback(host: string): boolean {
  // BlockList creates two objects for each check, and each miss is one.
  if (isIPv4(host)) return host.startsWith('127.');
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  return bare === 'localhost' || (isIPv6(bare) && isLoopbackV6(bare));
}

export interface HostAndPort {
  host: string;
  port: number;
}

/** Whether two listeners conflict. Port 0 never does, because it selects a free port. */
export const isSameListener = (one: HostAndPort, other: HostAndPort): boolean =>
  one.port === other.port && one.port !== 0 && isOverlapping(one.host, other.host);

const EVERY_ADDRESS = ['0.0.0.0', '::'];

const isOverlapping = (one: string, other: string): boolean =>
  one === other ||
  [one, other].some((host) => EVERY_ADDRESS.includes(host)) ||
  (isLoopback(one) && isLoopback(other));

/**
 * Returns a login with HTTP Basic. Encodes the colon of an identity, because a colon ends the user (RFC 7617 §2); a name
 * without a colon may be encoded already.
 */
export function basicLogin(user: string, password: string): string {
  const name = user.includes(':') ? encodeURIComponent(user) : user;
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}
