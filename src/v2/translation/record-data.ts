// Translates the data of a value between bytes and the record interface's `{format, value}`.
import { tryDecode } from '../../handle/bytes.js';
import { adminToJson, decodeAdmin, decodeVlist } from '../../handle/predefined-data.js';
import type { HandleValue } from '../../handle/value.js';
import { type ValueData, encodeData } from '../../handle/value-data.js';
import { isPrintable } from './v2-data.js';
import { ADMIN_TYPE, MEMBERS_TYPE } from './value.js';

const NONE = Buffer.alloc(0);

/**
 * The bytes of a value in a response of the Handle server. Unreadable data is empty; an update that sends
 * such a value back keeps the server's own form (write-plan.ts).
 */
export function bytesOfRecordData({ data }: Pick<HandleValue, 'data'>): Buffer {
  try {
    return encodeData(data);
  } catch {
    return NONE;
  }
}

/** The readable format where it is lossless, else base64. */
export function recordDataOfBytes(type: string, bytes: Buffer): ValueData {
  const data = tryDecode((content) => decodeStructure(type, content), bytes);
  // The JSON of HS_ADMIN and HS_VLIST has no place for extra bits and trailing bytes.
  if (data !== undefined && bytesOfRecordData({ data }).equals(bytes)) return data;
  return isPrintable(bytes)
    ? { format: 'string', value: bytes.toString('utf8') }
    : { format: 'base64', value: bytes.toString('base64') };
}

function decodeStructure(type: string, bytes: Buffer): ValueData | undefined {
  if (type === ADMIN_TYPE) return { format: 'admin', value: adminToJson(decodeAdmin(bytes)) };
  if (type === MEMBERS_TYPE) return { format: 'vlist', value: decodeVlist(bytes) };
  return undefined;
}
