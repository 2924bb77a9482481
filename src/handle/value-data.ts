// Value data: encodes `{format, value}` in record interface JSON as bytes.
import { type AdminJson, encodeAdmin, encodePublicKey, encodeVlist } from './predefined-data.js';
import { encodeSite } from './site-data.js';
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
 * Encodes JSON data as bytes; the format need not match the type. A bare string is short for format `string`.
 *
 * @throws RangeError or TypeError for JSON in no known format
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
