// The addresses at which the servers of a site answer over HTTP and HTTPS.
import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { withoutSlashesAtEnd } from '../../handle/handle-in-url.js';
import { upperAscii } from '../../handle/handle.js';
import type { SiteJson } from '../../handle/site-data.js';

type SiteServer = SiteJson['servers'][number];

export interface SiteAddress {
  /** Scheme, host and port, and the path before every other path. */
  url: string;
  /** As in the site record. */
  publicKey: SiteServer['publicKey'];
}

interface Asked {
  handle: string;
  authoritative: boolean;
  /** Where a stranger's record may lead. */
  ports: readonly (readonly [first: number, last: number])[];
}

/** That one read tries: the record is a stranger's, and could name thousands of addresses of others. */
const MAX_ADDRESSES = 4;
const MAX_URL_CHARS = 2048;

const trimSlashes = (path: string): string => withoutSlashesAtEnd(path).replace(/^\/+/, '');

/** At most four. With several sites those that are asked first come first; a primary site alone is authoritative. */
export function addressesOf(
  sites: readonly SiteJson[],
  { handle, authoritative, ports }: Asked,
): SiteAddress[] {
  const primary = sites.filter(({ primarySite }) => primarySite);
  const asked = authoritative && primary.length > 0 ? primary : sites;
  return asked.flatMap((site) => addressesAt(site, { handle, ports })).slice(0, MAX_ADDRESSES);
}

function addressesAt(site: SiteJson, { handle, ports }: Pick<Asked, 'handle' | 'ports'>): SiteAddress[] {
  const { servers, attributes = [] } = site;
  const server = servers[servers.length > 1 ? serverNumber(site, handle) : 0];
  if (server === undefined) return [];
  const attribute = (name: string): string | undefined =>
    attributes.find((one) => one.name === `${name}.${server.serverId}`)?.value ??
    attributes.find((one) => one.name === name)?.value;
  const host = attribute('domain') ?? hostOf(server.address);
  if (host === undefined) return [];
  const path = attribute('path') ?? '';
  if (host.length + path.length > MAX_URL_CHARS) return [];
  const { publicKey } = server;
  const allowed = httpInterfaces(server).filter(({ port }) =>
    ports.some(([first, last]) => port >= first && port <= last),
  );
  return allowed.slice(0, MAX_ADDRESSES).flatMap(({ protocol, port }) => {
    const url = parseUrl(`${protocol.toLowerCase()}://${host}:${port}/${trimSlashes(path)}`);
    return url === undefined ? [] : [{ url, publicKey }];
  });
}

/** HTTPS first. */
const httpInterfaces = ({ interfaces }: SiteServer): SiteServer['interfaces'] =>
  interfaces
    .filter(({ query, protocol }) => query && (protocol === 'HTTPS' || protocol === 'HTTP'))
    .toSorted((one, other) => other.protocol.length - one.protocol.length);

/** The address of all zeros stands for the name in the attribute `domain`. */
function hostOf(address: string): string | undefined {
  if (/^[0.:]*$/.test(address)) return undefined;
  return isIPv6(address) ? `[${address}]` : address;
}

/** Nothing but a host, a port and a path: a site record of a stranger names no credentials and no query. */
function parseUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { username, password, search, hash, href } = new URL(text);
  return username + password + search + hash === '' ? href.replace(/\/$/, '') : undefined;
}

const HASH_BY_PREFIX = 0;
const HASH_BY_SUFFIX = 1;

/** Facts of the protocol: `abs(last four bytes of MD5(…)) mod n`. */
function serverNumber({ hashOption, servers }: SiteJson, handle: string): number {
  const slash = handle.indexOf('/');
  const part =
    hashOption === HASH_BY_PREFIX
      ? handle.slice(0, slash)
      : hashOption === HASH_BY_SUFFIX
        ? handle.slice(slash + 1)
        : handle;
  const digest = createHash('md5').update(upperAscii(part)).digest();
  return Math.abs(digest.readInt32BE(12)) % servers.length;
}
