// Addresses in the configuration: URLs, Redis nodes, certificate fingerprints, networks and loopback.
import { withoutSlashesAtEnd } from '../handle/handle.js';
import { BlockList, isIP } from 'node:net';

/** The URL, or undefined when it is invalid. */
export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

function parseHttpUrl(text: string): URL | undefined {
  const url = parseUrl(text);
  return url?.protocol === 'http:' || url?.protocol === 'https:' ? url : undefined;
}

/** An http(s) URL, optionally with a path, without trailing slashes; undefined for any other. */
export function readBaseUrl(text: string): string | undefined {
  const url = parseHttpUrl(text);
  return url && !/[?#@]/.test(text) ? url.origin + withoutSlashesAtEnd(url.pathname) : undefined;
}

/**
 * The address of a Handle server or of DSpace in normal form, or a template with placeholders such as `{handle}`
 * unchanged. The host of a template is fixed, because it decides where requests go. Undefined for any other.
 */
export function readServerAddress(text: string): string | undefined {
  if (!text.includes('{')) return readBaseUrl(text);
  const isTemplate = /^https?:\/\/[^/?#@{}]+\/[\x21-\x7e]*$/.test(text);
  return isTemplate && parseHttpUrl(text) !== undefined ? text : undefined;
}

/** The origin of an http(s) URL that has only a host and a port; undefined for any other. */
export const readOrigin = (text: string): string | undefined =>
  parseHttpUrl(text)?.pathname === '/' ? readBaseUrl(text) : undefined;

/** An http(s) URL in normal form; undefined for any other. */
export const readWebUrl = (text: string): string | undefined => parseHttpUrl(text)?.href;

/** An http(s) URL, or a mailto: URL with one address, in normal form; undefined for any other. */
export const readLinkUrl = (text: string): string | undefined =>
  /^mailto:[^\s@:?]+@[^\s@:?]+(\?\S*)?$/i.test(text) ? parseUrl(text)?.href : readWebUrl(text);

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

/** Comma-separated fingerprints in normal form; undefined when one of them is invalid. */
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

/** Network names that Express accepts. */
const NETWORKS = ['loopback', 'linklocal', 'uniquelocal'];

/** A trusted proxy: an IP address, a CIDR network or a name that Express accepts; undefined for any other. */
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
