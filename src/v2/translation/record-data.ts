// Translates the data of a value between bytes and the record interface's `{format, value}`.
import {
  encodeAdmin,
  encodeVlist,
  adminToJson,
  decodeAdmin,
  decodeVlist,
  type AdminJson,
  encodePublicKey,
} from '../../handle/predefined-data.js';
import { tryDecode } from '../../handle/bytes.js';
import { encodeSite } from '../../handle/site-data.js';
import type { HandleValue, ValueReference } from '../../handle/value.js';
import { isPrintable } from './v2-data.js';
import { ADMIN_TYPE, MEMBERS_TYPE } from './value.js';

interface RecordData {
  format: string;
  value: unknown;
}

const READERS: Record<string, (value: unknown) => Buffer> = {
  string: (value) => Buffer.from(String(value), 'utf8'),
  base64: (value) => Buffer.from(String(value), 'base64'),
  hex: (value) => Buffer.from(String(value), 'hex'),
  admin: (value) => adminFromJson(value as AdminJson),
  vlist: (value) => encodeVlist(value as ValueReference[]),
  site: encodeSite,
  key: encodePublicKey,
};

const NONE = Buffer.alloc(0);

/**
 * The bytes of a value in a response of the Handle server. Unreadable data is empty; an update that sends
 * such a value back keeps the server's own form (write-plan.ts).
 */
export function bytesOfRecordData({ data }: Pick<HandleValue, 'data'>): Buffer {
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  try {
    const { format, value } = data as RecordData;
    return Object.hasOwn(READERS, format) ? (READERS[format]?.(value) ?? NONE) : NONE;
  } catch {
    return NONE;
  }
}

const adminFromJson = ({ handle, index, permissions, legacyByteLength }: AdminJson): Buffer =>
  encodeAdmin({ handle, index, permissions: parseInt(permissions, 2), legacy: legacyByteLength === true });

/** The readable format where it is lossless, else base64. */
export function recordDataOfBytes(type: string, bytes: Buffer): RecordData {
  const data = tryDecode((content) => decodeStructure(type, content), bytes);
  // The JSON of HS_ADMIN and HS_VLIST has no place for extra bits and trailing bytes.
  if (data !== undefined && bytesOfRecordData({ data }).equals(bytes)) return data;
  return isPrintable(bytes)
    ? { format: 'string', value: bytes.toString('utf8') }
    : { format: 'base64', value: bytes.toString('base64') };
}

function decodeStructure(type: string, bytes: Buffer): RecordData | undefined {
  if (type === ADMIN_TYPE) return { format: 'admin', value: adminToJson(decodeAdmin(bytes)) };
  if (type === MEMBERS_TYPE) return { format: 'vlist', value: decodeVlist(bytes) };
  return undefined;
}
