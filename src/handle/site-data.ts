// HS_SITE data: the servers of a site, as bytes and as JSON.
import { isIPv4 } from 'node:net';
import { ByteReader, tryDecode, int16, int32, sized } from './bytes.js';
import { decodePublicKey, encodePublicKey } from './predefined-data.js';

interface SiteInterface {
  query: boolean;
  admin: boolean;
  protocol: string;
  port: number;
}

interface SiteServer {
  serverId: number;
  address: string;
  publicKey?: { format: string; value: unknown };
  interfaces: SiteInterface[];
}

/** A site in the JSON of the record interface. */
export interface SiteJson {
  version: number;
  protocolVersion: string;
  serialNumber: number;
  primarySite: boolean;
  multiPrimary: boolean;
  /** Omitted when it is "by all". */
  hashOption?: number;
  hashFilter?: string;
  attributes?: { name: string; value: string }[];
  servers: SiteServer[];
}

const PROTOCOLS = ['UDP', 'TCP', 'HTTP', 'HTTPS'];
const HASH_BY_ALL = 2;
const PRIMARY = 0x80;
const MULTI_PRIMARY = 0x40;

/** @throws when the JSON is not a site */
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

/** @throws RangeError when the bytes are not a site */
export function decodeSite(bytes: Buffer): SiteJson {
  const reader = new ByteReader(bytes);
  const version = reader.int16();
  const protocolVersion = `${reader.byte()}.${reader.byte()}`;
  const serialNumber = reader.int16();
  const mask = reader.byte();
  const hashOption = reader.byte();
  const hashFilter = reader.text();
  const attributes = reader.list(() => ({ name: reader.text(), value: reader.text() }));
  return {
    version,
    protocolVersion,
    serialNumber,
    primarySite: (mask & PRIMARY) !== 0,
    multiPrimary: (mask & MULTI_PRIMARY) !== 0,
    ...(hashOption !== HASH_BY_ALL && { hashOption }),
    ...(hashFilter !== '' && { hashFilter }),
    attributes,
    servers: reader.list(() => readServer(reader)),
  };
}

function readServer(reader: ByteReader): SiteServer {
  const serverId = reader.int32();
  const address = bytesToAddress(reader.take(16));
  const publicKey = keyToJson(reader.sized());
  const interfaces = reader.list(() => readInterface(reader));
  return { serverId, address, publicKey, interfaces };
}

function readInterface(reader: ByteReader): SiteInterface {
  const kind = reader.byte();
  const protocol = PROTOCOLS[reader.byte()];
  if (protocol === undefined) throw new RangeError('an interface without a known protocol');
  return { query: (kind & 2) !== 0, admin: (kind & 1) !== 0, protocol, port: reader.int32() };
}

function keyToJson(bytes: Buffer): { format: string; value: unknown } {
  const key = tryDecode(decodePublicKey, bytes);
  if (key === undefined) return { format: 'base64', value: bytes.toString('base64') };
  return { format: 'key', value: key };
}

function keyToBytes({ format, value }: { format: string; value: unknown }): Buffer {
  return format === 'key' ? encodePublicKey(value) : Buffer.from(String(value), 'base64');
}

/** Sixteen bytes, of which an IPv4 address fills the last four. */
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

function bytesToAddress(bytes: Buffer): string {
  if (bytes.subarray(0, 12).every((byte) => byte === 0)) return bytes.subarray(12).join('.');
  return Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(group * 2).toString(16)).join(':');
}
