// The `data` member of a value: which of the formats it is written in, and how each is read.
import { isUtf8 } from 'node:buffer';
import { adminToJson, decodeAdmin, decodeVlist, encodeVlist } from '../../src/handle/admin-data.js';
import { adminFromJson } from './admin-json.js';
import { BadInput, badValue, primitiveText } from './bad-input.js';
import { decodeOrNothing } from '../../src/handle/bytes-codec.js';
import { decodeKey, keyFromJson } from '../../src/handle/key-data.js';
import { decodeSite, siteFromJson } from '../../src/handle/site-data.js';
import type { ValueReference } from '../../src/handle/value.js';

interface Data {
  format: string;
  value: unknown;
}

interface OwnFormat {
  types: RegExp;
  format: string;
  decode: (bytes: Buffer) => unknown;
}

/** Types whose bytes are shown decoded, as far as they can be. */
const OWN_FORMATS: OwnFormat[] = [
  {
    types: /^HS_ADMIN(\..*)?$/,
    format: 'admin',
    decode: (bytes) => adminToJson(decodeAdmin(bytes)),
  },
  { types: /^HS_VLIST$/, format: 'vlist', decode: decodeVlist },
  { types: /^(HS_SITE|HS_SITE\.PREFIX|HS_NA_DELEGATE)$/, format: 'site', decode: decodeSite },
  { types: /^HS_PUBKEY$/, format: 'key', decode: decodeKey },
];

/** Writes the data of a value of this type, in the first format that fits. */
export function dataToJson(type: string, bytes: Buffer): Data {
  const own = OWN_FORMATS.find(({ types }) => types.test(type));
  const decoded = own && decodeOrNothing(own.decode, bytes);
  if (own && decoded !== undefined) return { format: own.format, value: decoded };
  if (isText(bytes)) return { format: 'string', value: bytes.toString('utf8') };
  return { format: 'base64', value: bytes.toString('base64') };
}

/** Bytes 9 to 19 pass as text, the other control bytes do not (hdllib Util.looksLikeBinary). */
function isText(bytes: Buffer): boolean {
  const isControl = (byte: number): boolean => byte < 9 || (byte > 19 && byte < 32) || byte === 0x7f;
  return isUtf8(bytes) && !bytes.some(isControl);
}

const READERS: Record<string, (value: unknown) => Buffer> = {
  string: (value) => Buffer.from(String(value), 'utf8'),
  base64: (value) => Buffer.from(String(value), 'base64'),
  hex: (value) => hexToBytes(String(value)),
  admin: adminFromJson,
  vlist: (value) => encodeVlist(value as ValueReference[]),
  site: siteFromJson,
  key: keyFromJson,
};

/** Reads the data of a value; the format need not fit the type. */
export function dataFromJson(data: unknown): Buffer {
  if (data === undefined) {
    throw badValue(
      'java.lang.NullPointerException: Cannot invoke "com.google.gson.JsonElement.isJsonPrimitive()" because "<parameter1>" is null',
    );
  }
  if (data === null || typeof data !== 'object') return Buffer.from(primitiveText(data), 'utf8');
  const { format, value } = data as Partial<Data>;
  const read = READERS[String(format).toLowerCase()];
  if (read === undefined) throw badValue(`java.text.ParseException: Unexpected type ${String(format)}`);
  try {
    return read(value);
  } catch (error) {
    if (error instanceof BadInput) throw error;
    throw badValue(`java.text.ParseException: ${(error as Error).message}`);
  }
}

function hexToBytes(digits: string): Buffer {
  if (!/^([0-9a-f]{2})*$/i.test(digits)) throw badValue('java.text.ParseException: not hexadecimal digits');
  return Buffer.from(digits, 'hex');
}
