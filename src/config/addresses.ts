// Addresses in the configuration: URLs, Redis nodes, certificate fingerprints, networks and loopback.
import { withoutSlashesAtEnd } from '../handle/handle-in-url.js';
import { BlockList, isIP } from 'node:net';

/** The origin of an http(s) URL that has only a host and a port; undefined for any other. */
export function readOrigin(text: string): string | undefined {
  const url = parseUrl(text);
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return undefined;
  const bare = url.username + url.password + url.search + url.hash === '' && url.pathname === '/';
  return bare && !/[?#@]/.test(text) ? url.origin : undefined;
}

/** A redis(s) URL unchanged; undefined for any other. */
export function readRedisUrl(text: string): string | undefined {
  const url = parseUrl(text);
  return url !== undefined && ['redis:', 'rediss:'].includes(url.protocol) && url.hostname !== ''
    ? text
    : undefined;
}

/** A Sentinel or Cluster node as a URL; also accepts `host:port`. */
export function readRedisNode(text: string): string | undefined {
  const isBare = /^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(text);
  return readRedisUrl(isBare ? `redis://${text}` : text);
}

/** Comma-separated fingerprints. */
export function readFingerprints(text: string): string | undefined {
  const read = text.split(',').map((one) => readFingerprint(one.trim()));
  return read.every((one) => one !== undefined) ? read.join(',') : undefined;
}

/** A SHA-256 certificate fingerprint in the form of node:tls: `AB:CD:…`. */
function readFingerprint(text: string): string | undefined {
  const digits = text.replaceAll(':', '').toUpperCase();
  const isFingerprint = /^([0-9A-F]{64}|([0-9A-F]{2}:){31}[0-9A-F]{2})$/i.test(text);
  return isFingerprint ? (digits.match(/../g) ?? []).join(':') : undefined;
}

/** The URL, or undefined when it is invalid. */
export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** An http(s) URL, optionally with a path, without trailing slashes; undefined for any other. */
export function readBaseUrl(text: string): string | undefined {
  const url = parseUrl(text);
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || /[?#@]/.test(text))
    return undefined;
  return url.origin + withoutSlashesAtEnd(url.pathname);
}

/** An http(s) URL in normal form; undefined for any other. */
export function readWebUrl(text: string): string | undefined {
  const url = parseUrl(text);
  return url !== undefined && ['http:', 'https:'].includes(url.protocol) ? url.href : undefined;
}

/** An http(s) URL, or a mailto: URL with one address, in normal form; undefined for any other. */
export function readLinkUrl(text: string): string | undefined {
  return /^mailto:[^\s@:?]+@[^\s@:?]+(\?\S*)?$/i.test(text) ? parseUrl(text)?.href : readWebUrl(text);
}

/** Names of networks that Express knows. */
const NETWORKS = ['loopback', 'linklocal', 'uniquelocal'];

/** A trusted proxy: an IP address, a CIDR network or a name that Express knows; undefined for any other. */
export function readNetwork(text: string): string | undefined {
  if (NETWORKS.includes(text)) return text;
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return undefined;
  const isNetwork =
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
  return isNetwork ? text : undefined;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** `localhost` is always loopback (RFC 6761 §6.3); any other name may resolve to any address. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (bare === 'localhost') return true;
  const version = isIP(bare);
  return version !== 0 && loopback.check(bare, version === 6 ? 'ipv6' : 'ipv4');
}
