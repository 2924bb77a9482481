// The data of a value: its bytes, and `{format, value}` in the JSON of the record interface.
import { isUtf8 } from 'node:buffer';
import { tryDecode } from './bytes.js';
import {
  type AdminJson,
  adminToJson,
  decodeAdmin,
  decodePublicKey,
  decodeVlist,
  encodeAdmin,
  encodePublicKey,
  encodeVlist,
} from './predefined-data.js';
import { decodeSite, encodeSite } from './site-data.js';
import type { ValueReference } from './value.js';

export interface ValueData {
  format: string;
  value: unknown;
}

const ENCODERS: Record<string, (value: unknown) => Buffer> = {
  string: (value) => Buffer.from(String(value), 'utf8'),
  base64: (value) => Buffer.from(String(value), 'base64'),
  hex: encodeHex,
  admin: encodeAdminJson,
  vlist: (value) => encodeVlist(value as ValueReference[]),
  site: encodeSite,
  key: encodePublicKey,
};

/**
 * The bytes of data in JSON; the format need not fit the type. A bare text is the server's short form of a string.
 *
 * @throws when it is not the JSON of any format
 */
export function encodeData(data: unknown): Buffer {
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  const { format, value } = data as ValueData;
  const encode = Object.hasOwn(ENCODERS, format) ? ENCODERS[format] : undefined;
  if (encode === undefined) throw new RangeError('an unknown data format');
  return encode(value);
}

function encodeHex(value: unknown): Buffer {
  const digits = String(value);
  if (!/^([0-9a-f]{2})*$/i.test(digits)) throw new RangeError('not hexadecimal digits');
  return Buffer.from(digits, 'hex');
}

function encodeAdminJson(json: unknown): Buffer {
  const { handle, index, permissions, legacyByteLength } = json as AdminJson;
  return encodeAdmin({
    handle,
    index,
    permissions: parseInt(permissions, 2),
    legacy: legacyByteLength === true,
  });
}

interface OwnFormat {
  types: RegExp;
  format: string;
  decode: (bytes: Buffer) => unknown;
}

/** Types whose bytes a Handle server shows decoded, as far as they can be. */
const OWN_FORMATS: OwnFormat[] = [
  { types: /^HS_ADMIN(\..*)?$/, format: 'admin', decode: (bytes) => adminToJson(decodeAdmin(bytes)) },
  { types: /^HS_VLIST$/, format: 'vlist', decode: decodeVlist },
  { types: /^(HS_SITE|HS_SITE\.6|HS_SITE\.PREFIX|HS_NA_DELEGATE)$/, format: 'site', decode: decodeSite },
  { types: /^HS_PUBKEY$/, format: 'key', decode: decodePublicKey },
];

/** The data as a Handle server shows it: in the format of its type, else as text, else in base64. */
export function decodeData(type: string, bytes: Buffer): ValueData {
  const own = OWN_FORMATS.find(({ types }) => types.test(type));
  const decoded = own && tryDecode(own.decode, bytes);
  if (own && decoded !== undefined) return { format: own.format, value: decoded };
  if (isText(bytes)) return { format: 'string', value: bytes.toString('utf8') };
  return { format: 'base64', value: bytes.toString('base64') };
}

/** Bytes 9 to 19 pass as text, the other control bytes do not (hdllib Util.looksLikeBinary). */
function isText(bytes: Buffer): boolean {
  const isControl = (byte: number): boolean => byte < 9 || (byte > 19 && byte < 32) || byte === 0x7f;
  return isUtf8(bytes) && !bytes.some(isControl);
}
