// The `data` of a record-interface value: read to bytes, and written of bytes.
import {
  encodeAdmin,
  encodeVlist,
  adminToJson,
  decodeAdmin,
  decodeVlist,
  type AdminJson,
} from '../handle/admin-data.js';
import { decodeOrNothing } from '../handle/bytes-codec.js';
import { keyFromJson } from '../handle/key-data.js';
import { siteFromJson } from '../handle/site-data.js';
import type { HandleValue, ValueReference } from '../handle/value.js';
import { isShowable } from './content.js';
import { ADMIN_TYPE, MEMBERS_TYPE } from './value.js';

interface Data {
  format: string;
  value: unknown;
}

const READERS: Record<string, (value: unknown) => Buffer> = {
  string: (value) => Buffer.from(String(value), 'utf8'),
  base64: (value) => Buffer.from(String(value), 'base64'),
  hex: (value) => Buffer.from(String(value), 'hex'),
  admin: (value) => adminFromJson(value as AdminJson),
  vlist: (value) => encodeVlist(value as ValueReference[]),
  site: siteFromJson,
  key: keyFromJson,
};

const NONE = Buffer.alloc(0);

/**
 * The bytes of a value as a server shows it. What cannot be read has none here; an update that sends
 * such a value back leaves the server's own form in place (merge.ts).
 */
export function storedBytes({ data }: Pick<HandleValue, 'data'>): Buffer {
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  try {
    const { format, value } = data as Data;
    return Object.hasOwn(READERS, format) ? (READERS[format]?.(value) ?? NONE) : NONE;
  } catch {
    return NONE;
  }
}

const adminFromJson = ({ handle, index, permissions, legacyByteLength }: AdminJson): Buffer =>
  encodeAdmin({ handle, index, permissions: parseInt(permissions, 2), legacy: legacyByteLength === true });

/** Bytes as they are sent: readable where nothing gets lost, else base64. */
export function dataToSend(type: string, bytes: Buffer): Data {
  return structured(type, bytes) ?? plain(bytes);
}

const plain = (bytes: Buffer): Data =>
  isShowable(bytes)
    ? { format: 'string', value: bytes.toString('utf8') }
    : { format: 'base64', value: bytes.toString('base64') };

function structured(type: string, bytes: Buffer): Data | undefined {
  const data = decodeOrNothing((own) => decodedAs(type, own), bytes);
  // Bits and bytes that the JSON form has no place for would be lost.
  return data !== undefined && storedBytes({ data }).equals(bytes) ? data : undefined;
}

function decodedAs(type: string, bytes: Buffer): Data | undefined {
  if (type === ADMIN_TYPE) return { format: 'admin', value: adminToJson(decodeAdmin(bytes)) };
  if (type === MEMBERS_TYPE) return { format: 'vlist', value: decodeVlist(bytes) };
  return undefined;
}
