// Decodes a value's bytes to data in a Handle server's JSON: the inverse of value-data.ts.
import { isUtf8 } from 'node:buffer';
import { ByteReader, tryDecode } from './bytes.js';
import { adminToJson, decodeAdmin, decodePublicKey, decodeVlist } from './predefined-data.js';
import type { SiteJson, SiteServer } from './site-data.js';
import type { ValueData } from './value-data.js';

interface OwnFormat {
  types: RegExp;
  format: string;
  decode: (bytes: Buffer) => unknown;
}

/** Types that a Handle server decodes if their bytes are valid. */
const OWN_FORMATS: OwnFormat[] = [
  { types: /^HS_ADMIN(\..*)?$/, format: 'admin', decode: (bytes) => adminToJson(decodeAdmin(bytes)) },
  { types: /^HS_VLIST$/, format: 'vlist', decode: decodeVlist },
  { types: /^(HS_SITE|HS_SITE\.6|HS_SITE\.PREFIX|HS_NA_DELEGATE)$/, format: 'site', decode: decodeSite },
  { types: /^HS_PUBKEY$/, format: 'key', decode: decodePublicKey },
];

/** Decodes data as a Handle server does: in the type's format, else as text, else as base64. */
export function decodeData(type: string, bytes: Buffer): ValueData {
  const own = OWN_FORMATS.find(({ types }) => types.test(type));
  const decoded = own && tryDecode(own.decode, bytes);
  if (own && decoded !== undefined) return { format: own.format, value: decoded };
  if (isText(bytes)) return { format: 'string', value: bytes.toString('utf8') };
  return { format: 'base64', value: bytes.toString('base64') };
}

/**
 * Whether the bytes are text, in which only the control bytes 9 to 19 are allowed (hdllib
 * Util.looksLikeBinary).
 */
function isText(bytes: Buffer): boolean {
  const isControl = (byte: number): boolean => byte < 9 || (byte > 19 && byte < 32) || byte === 0x7f;
  return isUtf8(bytes) && !bytes.some(isControl);
}

const PROTOCOLS = ['UDP', 'TCP', 'HTTP', 'HTTPS'];
const HASH_BY_ALL = 2;
const PRIMARY = 0x80;
const MULTI_PRIMARY = 0x40;

/** @throws RangeError for bytes that are not a site */
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

function readInterface(reader: ByteReader): SiteServer['interfaces'][number] {
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

function bytesToAddress(bytes: Buffer): string {
  if (bytes.subarray(0, 12).every((byte) => byte === 0)) return bytes.subarray(12).join('.');
  return Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(group * 2).toString(16)).join(':');
}
