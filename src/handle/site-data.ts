// HS_SITE data: encodes a site's JSON, with its servers, as bytes.
import { isIPv4 } from 'node:net';
import { int16, int32, sized } from './bytes.js';
import { encodePublicKey } from './predefined-data.js';

interface SiteInterface {
  query: boolean;
  admin: boolean;
  protocol: string;
  port: number;
}

export interface SiteServer {
  serverId: number;
  address: string;
  publicKey?: { format: string; value: unknown };
  interfaces: SiteInterface[];
}

/** A site in record interface JSON. */
export interface SiteJson {
  version: number;
  protocolVersion: string;
  serialNumber: number;
  primarySite: boolean;
  multiPrimary: boolean;
  /** Omitted for `HASH_BY_ALL`. */
  hashOption?: number;
  hashFilter?: string;
  attributes?: { name: string; value: string }[];
  servers: SiteServer[];
}

const PROTOCOLS = ['UDP', 'TCP', 'HTTP', 'HTTPS'];
const HASH_BY_ALL = 2;
const PRIMARY = 0x80;
const MULTI_PRIMARY = 0x40;

/** Encodes a site. @throws TypeError or RangeError for JSON that is not a site */
export function encodeSite(json: unknown): Buffer {
  const site = json as SiteJson;
  const [major = 0, minor = 0] = site.protocolVersion.split('.').map(Number);
  const attributes = site.attributes ?? [];
  return Buffer.concat([
    int16(site.version),
    Buffer.from([major, minor]),
    int16(site.serialNumber),
    Buffer.from([primaryMask(site), site.hashOption ?? HASH_BY_ALL]),
    sized(site.hashFilter ?? ''),
    int32(attributes.length),
    ...attributes.map(({ name, value }) => Buffer.concat([sized(name), sized(value)])),
    int32(site.servers.length),
    ...site.servers.map(serverToBytes),
  ]);
}

const primaryMask = ({ primarySite, multiPrimary }: SiteJson): number =>
  (primarySite ? PRIMARY : 0) | (multiPrimary ? MULTI_PRIMARY : 0);

function serverToBytes({ serverId, address, publicKey, interfaces }: SiteServer): Buffer {
  const key = publicKey === undefined ? Buffer.alloc(0) : keyToBytes(publicKey);
  const encoded = interfaces.map(({ query, admin, protocol, port }) =>
    Buffer.concat([
      Buffer.from([(admin ? 1 : 0) | (query ? 2 : 0), PROTOCOLS.indexOf(protocol)]),
      int32(port),
    ]),
  );
  return Buffer.concat([
    int32(serverId),
    addressToBytes(address),
    sized(key),
    int32(encoded.length),
    ...encoded,
  ]);
}

function keyToBytes({ format, value }: { format: string; value: unknown }): Buffer {
  return format === 'key' ? encodePublicKey(value) : Buffer.from(String(value), 'base64');
}

/** Encodes an address in 16 bytes, an IPv4 address in the last four. */
function addressToBytes(address: string): Buffer {
  const bytes = Buffer.alloc(16);
  if (isIPv4(address)) {
    bytes.set(address.split('.').map(Number), 12);
    return bytes;
  }
  const [head = '', tail = ''] = address.split('::');
  const groups = (text: string): Buffer =>
    Buffer.concat(text === '' ? [] : text.split(':').map((group) => int16(parseInt(group, 16))));
  bytes.set(groups(head), 0);
  bytes.set(groups(tail), 16 - groups(tail).length);
  return bytes;
}
