// A cache entry: the public record of one handle with its times, and its binary form for Redis and files.
import { crc32 } from 'node:zlib';
import { type Bytes, toText } from '../handle/bytes.js';
import { parseJson } from '../handle/json.js';
import type { Answer } from '../handle/outcome.js';
import { assertValue } from '../handle/value.js';

/** The public values of a handle. */
export interface StoredValues {
  kind: Answer['kind'];
  /** Public values as a JSON array; empty for `empty` and `not-found`. */
  values: Bytes;
}

/** The members of an entry that a response contains. */
export interface RecordContent extends StoredValues {
  /** Server message of a not-found answer; usually empty. */
  message: string;
}

export interface Times {
  /** Send time of the upstream request. */
  requestedAt: number;
  /** The entry is fresh until this time. */
  staleAt: number;
}

/** Cached state of a handle. Times (ms): in memory by `Clock.now`, in files by the wall clock, in Redis by its clock. */
export interface Entry extends RecordContent, Times {
  /** A stale entry may be served until this time when the upstream fails (RFC 5861 stale-if-error). */
  deleteAt: number;
}

export interface KeyedEntry {
  key: string;
  entry: Entry;
}

export const asStale = <T extends Times>(entry: T): T => ({ ...entry, staleAt: 0 });

export const isSame = (one: Entry, other: Entry): boolean =>
  one.requestedAt === other.requestedAt &&
  one.staleAt === other.staleAt &&
  one.deleteAt === other.deleteAt &&
  hasSameContent(one, other);

export const hasSameContent = (one: Entry | undefined, other: Entry): boolean =>
  one?.kind === other.kind && one.values === other.values && one.message === other.message;

// Increment VERSION with every layout change: an entry of a different version is a miss.
const VERSION = 5;
/** The first four bytes: `HRP` and the version. */
const LAYOUT = Buffer.from('HRP').readUIntBE(0, 3) * 256 + VERSION;
export const KINDS = ['found', 'empty', 'not-found'] as const;
/** Scripts mark a Redis entry stale by adding this to its kind (redis/coherence-scripts.ts, ENTRY). */
const STALE_KINDS = KINDS.length;
const HEADER_BYTES = 69;
const BAN_AT = 45;
const RUN_AT = 53;
/** Length of a server run id (characters). */
export const RUN_LENGTH = 16;
/** Offset of the CRC-32 over the bytes from CHECKED_FROM, seeded with the kind. */
const CHECKSUM_AT = 5;
const CHECKED_FROM = 9;

/** The server run and the newest ban number at the start of a load. */
export interface LoadOrigin {
  run: string;
  ban: number;
}

/** A buffer, and the offset of the next read or write. */
export interface Cursor {
  bytes: Buffer;
  at: number;
}

/** Returns an upper bound for the encoded size: a UTF-16 unit takes at most three bytes in UTF-8. */
export const maxEncodedBytes = (key: string, { message, values }: Entry): number =>
  HEADER_BYTES + 3 * (key.length + message.length) + values.length;

/** Encodes an entry with its key, origin and checksum. */
export function encodeEntry(key: string, entry: Entry, origin?: LoadOrigin): Buffer {
  const into = { bytes: Buffer.allocUnsafe(maxEncodedBytes(key, entry)), at: 0 };
  writeEntry(into, { key, entry }, origin);
  const whole = into.bytes.subarray(0, into.at);
  whole.writeUInt32BE(checksumOf(whole), CHECKSUM_AT);
  return whole;
}

/** Writes an entry without its checksum and advances the cursor; `into` needs room for `maxEncodedBytes`. */
export function writeEntry(
  into: Cursor,
  { key, entry }: { key: string; entry: Entry },
  { run, ban }: LoadOrigin = { run: '', ban: 0 },
): void {
  const { bytes, at } = into;
  bytes.fill(0, at, at + HEADER_BYTES);
  bytes.writeUInt32BE(LAYOUT, at);
  bytes.writeUInt8(KINDS.indexOf(entry.kind), at + 4);
  bytes.writeDoubleBE(entry.requestedAt, at + 9);
  bytes.writeDoubleBE(entry.staleAt, at + 17);
  bytes.writeDoubleBE(entry.deleteAt, at + 25);
  bytes.writeDoubleBE(ban, at + BAN_AT);
  bytes.write(run, at + RUN_AT, RUN_LENGTH, 'latin1');
  const messageAt = at + HEADER_BYTES + bytes.write(key, at + HEADER_BYTES);
  const valuesAt = messageAt + (entry.message === '' ? 0 : bytes.write(entry.message, messageAt));
  bytes.writeUInt32BE(messageAt - at - HEADER_BYTES, at + 33);
  bytes.writeUInt32BE(valuesAt - messageAt, at + 37);
  bytes.writeUInt32BE(entry.values.length, at + 41);
  into.at = valuesAt + bytes.write(entry.values, valuesAt, 'latin1');
}

/**
 * Decodes an entry; undefined for a different version, a different key, a damaged buffer, or values that no
 * server sent: any program that may write to Redis can compute the checksum.
 */
export function decodeEntry(key: string, buffer: Buffer): Entry | undefined {
  const from = { bytes: buffer, at: 0 };
  const read = isIntact(buffer) ? readEntry(from) : undefined;
  return read?.key === key && from.at === buffer.length && hasValues(read.entry) ? read.entry : undefined;
}

/** Whether the values are those of a load: only a found record has any, as JSON. */
function hasValues({ kind, values }: Entry): boolean {
  if (kind !== 'found') return values === '';
  try {
    const parsed = parseJson(toText(values));
    return Array.isArray(parsed) && parsed.map(assertValue).every(hasTtl);
  } catch {
    return false;
  }
}

const hasTtl = ({ ttl }: { ttl?: unknown }): boolean =>
  ['number', 'string', 'undefined'].includes(typeof ttl);

/** The last time that a date can have (ECMA-262 §21.4.1.1). */
const MAX_TIME = 8.64e15;

const isTime = (time: number): boolean => time >= 0 && time <= MAX_TIME;

/** Reads an entry from verified bytes, and advances; undefined for another version, a cut buffer or impossible times. */
export function readEntry(from: Cursor): { key: string; entry: Entry } | undefined {
  const { bytes, at } = from;
  if (bytes.length < at + HEADER_BYTES || bytes.readUInt32BE(at) !== LAYOUT) return undefined;
  const kindByte = bytes.readUInt8(at + 4);
  const isStale = kindByte >= STALE_KINDS;
  const kind = KINDS[isStale ? kindByte - STALE_KINDS : kindByte];
  const keyAt = at + HEADER_BYTES;
  const messageAt = keyAt + bytes.readUInt32BE(at + 33);
  const valuesAt = messageAt + bytes.readUInt32BE(at + 37);
  const end = valuesAt + bytes.readUInt32BE(at + 41);
  if (kind === undefined || end > bytes.length) return undefined;
  from.at = end;
  const entry = {
    kind,
    message: bytes.toString('utf8', messageAt, valuesAt),
    values: bytes.toString('latin1', valuesAt, end) as Bytes,
    requestedAt: bytes.readDoubleBE(at + 9),
    staleAt: isStale ? 0 : bytes.readDoubleBE(at + 17),
    deleteAt: bytes.readDoubleBE(at + 25),
  };
  if (![entry.requestedAt, entry.staleAt, entry.deleteAt].every(isTime)) return undefined;
  return { key: bytes.toString('utf8', keyAt, messageAt), entry };
}

export const originOf = (buffer: Buffer): LoadOrigin => ({
  run: buffer.toString('latin1', RUN_AT, RUN_AT + RUN_LENGTH),
  ban: buffer.readDoubleBE(BAN_AT),
});

/** Shifts the times of an entry, for example to a different clock. An entry marked stale stays marked. */
export const shiftTimes = (entry: Entry, byMs: number): Entry => ({
  ...entry,
  requestedAt: entry.requestedAt + byMs,
  staleAt: entry.staleAt === 0 ? 0 : entry.staleAt + byMs,
  deleteAt: entry.deleteAt + byMs,
});

const isIntact = (buffer: Buffer): boolean =>
  buffer.length >= HEADER_BYTES && buffer.readUInt32BE(CHECKSUM_AT) === checksumOf(buffer);

const checksumOf = (buffer: Buffer): number =>
  crc32(buffer.subarray(CHECKED_FROM), buffer.readUInt8(4) % STALE_KINDS);
