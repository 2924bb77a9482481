// A handle value in a message (RFC 3651 §3.1): from the JSON of a record, byte for byte as the server has it.
import { int32, sized } from '../../handle/bytes.js';
import { encodeVlist } from '../../handle/predefined-data.js';
import { type HandleValue, lastFourPermissions } from '../../handle/value.js';
import { encodeData } from '../../handle/value-data.js';

const RELATIVE = 0;
const ABSOLUTE = 1;
/** What a missing `ttl` means. */
const DEFAULT_TTL = 86_400;

/** @throws when its data is not of a known format */
export function encodeValue(value: HandleValue): Buffer {
  const { index, type, data, permissions, ttl = DEFAULT_TTL, timestamp, references = [] } = value;
  const bits = parseInt(lastFourPermissions(permissions), 2);
  return Buffer.concat([
    int32(index),
    int32(timestamp === undefined ? 0 : secondsOf(timestamp)),
    ...(typeof ttl === 'number'
      ? [Buffer.of(RELATIVE), int32(ttl)]
      : [Buffer.of(ABSOLUTE), int32(secondsOf(ttl))]),
    Buffer.of(bits),
    sized(type),
    sized(encodeData(data)),
    encodeVlist(references),
  ]);
}

/** An unreadable date is long past. */
const secondsOf = (date: string): number => Math.floor(Date.parse(date) / 1000) || 0;
