// A handle value in a message (RFC 3651 §3.1): from the JSON of a record, byte for byte as the server has it, and back.
import { type ByteReader, int32, sized } from '../../handle/bytes.js';
import { encodeVlist, readReferences } from '../../handle/predefined-data.js';
import { DEFAULT_PERMISSIONS, type HandleValue, type Ttl, lastFourPermissions } from '../../handle/value.js';
import { decodeData, encodeData } from '../../handle/value-data.js';

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

/** Reads a value with the members and the order of a Handle server. */
export function readValue(reader: ByteReader): HandleValue {
  const index = reader.int32();
  const timestamp = reader.int32();
  const ttl = readTtl(reader);
  const permissions = (reader.byte() & 0x0f).toString(2).padStart(4, '0');
  const type = reader.text();
  const data = decodeData(type, reader.sized());
  const references = readReferences(reader);
  return {
    index,
    type,
    data,
    ...(permissions !== DEFAULT_PERMISSIONS && { permissions }),
    ttl,
    ...(timestamp !== 0 && { timestamp: dateOf(timestamp) }),
    ...(references.length > 0 && { references }),
  };
}

function readTtl(reader: ByteReader): Ttl {
  const kind = reader.byte();
  const seconds = reader.int32();
  return kind === ABSOLUTE ? dateOf(seconds) : seconds;
}

const dateOf = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');

/** An unreadable date is long past. */
const secondsOf = (date: string): number => Math.floor(Date.parse(date) / 1000) || 0;
