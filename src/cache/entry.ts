// A cache entry: the public record of one handle with its times, and the binary form that Redis stores.
import { crc32 } from 'node:zlib';
import { type Bytes, fromBuffer, toBuffer } from '../handle/bytes.js';
import type { Answer } from '../handle/outcome.js';

/** The known state of a handle. All times are milliseconds since the epoch. */
export interface Entry {
  kind: Answer['kind'];
  /** Public values as a JSON array; empty for `empty` and `not-found`. */
  values: Bytes;
  /** Message of the server with a not-found answer; usually empty. */
  message: string;
  /** When the request was sent to the upstream. */
  requestedAt: number;
  /** The entry is fresh until this time. */
  staleAt: number;
  /** A stale entry may be served until this time when the upstream fails (RFC 5861 stale-if-error). */
  deleteAt: number;
}

export type Times = Pick<Entry, 'requestedAt' | 'staleAt'>;

/** Stale by every clock, even if one is set back later. */
export const asStale = <T extends Times>(entry: T): T => ({ ...entry, staleAt: 0 });

export const isSame = (one: Entry, other: Entry): boolean =>
  one.requestedAt === other.requestedAt &&
  one.staleAt === other.staleAt &&
  one.deleteAt === other.deleteAt &&
  hasSameContent(one, other);

export const hasSameContent = (one: Entry, other: Entry): boolean =>
  one.kind === other.kind && one.values === other.values && one.message === other.message;

// Increment VERSION with every change of the layout: an entry of another version is a miss.
const MAGIC = 'HRP';
const VERSION = 5;
export const KINDS = ['found', 'empty', 'not-found'] as const;
/** Scripts make an entry stale in Redis by adding this to its kind (redis/coherence-scripts.ts, ENTRY). */
const STALE_KINDS = KINDS.length;
const HEADER_BYTES = 69;
const BAN_AT = 45;
const RUN_AT = 53;
/** Length of a server run. */
export const RUN_LENGTH = 16;
/** A CRC-32 of the bytes from CHECKED_FROM, seeded with the kind. */
const CHECKSUM_AT = 5;
const CHECKED_FROM = 9;

/** The server run and the newest ban number when a load began. */
export interface LoadOrigin {
  run: string;
  ban: number;
}

/** Encodes an entry with its key and origin. */
export function encodeEntry(
  key: string,
  entry: Entry,
  { run, ban }: LoadOrigin = { run: '', ban: 0 },
): Buffer {
  const parts = [Buffer.from(key), Buffer.from(entry.message), toBuffer(entry.values)] as const;
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGIC, 0, 'latin1');
  header.writeUInt8(VERSION, 3);
  header.writeUInt8(KINDS.indexOf(entry.kind), 4);
  header.writeDoubleBE(entry.requestedAt, 9);
  header.writeDoubleBE(entry.staleAt, 17);
  header.writeDoubleBE(entry.deleteAt, 25);
  header.writeDoubleBE(ban, BAN_AT);
  header.write(run, RUN_AT, RUN_LENGTH, 'latin1');
  parts.forEach((part, at) => header.writeUInt32BE(part.length, 33 + at * 4));
  const whole = Buffer.concat([header, ...parts]);
  whole.writeUInt32BE(checksumOf(whole), CHECKSUM_AT);
  return whole;
}

/** The key of an encoded entry; undefined for another version or a damaged buffer. */
export function keyIn(buffer: Buffer): string | undefined {
  if (!hasOurHeader(buffer)) return undefined;
  return buffer.toString('utf8', HEADER_BYTES, HEADER_BYTES + buffer.readUInt32BE(33));
}

/** Undefined for another version, another key or a damaged buffer. */
export function decodeEntry(key: string, buffer: Buffer): Entry | undefined {
  if (!hasOurHeader(buffer)) return undefined;
  const kindByte = buffer.readUInt8(4);
  const isStale = kindByte >= STALE_KINDS;
  const kind = KINDS[isStale ? kindByte - STALE_KINDS : kindByte];
  const [keyLength, messageLength, valuesLength] = [33, 37, 41].map((at) => buffer.readUInt32BE(at)) as [
    number,
    number,
    number,
  ];
  const valuesAt = HEADER_BYTES + keyLength + messageLength;
  if (kind === undefined || buffer.length !== valuesAt + valuesLength) return undefined;
  if (buffer.toString('utf8', HEADER_BYTES, HEADER_BYTES + keyLength) !== key) return undefined;
  return {
    kind,
    message: buffer.toString('utf8', HEADER_BYTES + keyLength, valuesAt),
    values: fromBuffer(buffer.subarray(valuesAt)),
    requestedAt: buffer.readDoubleBE(9),
    staleAt: isStale ? 0 : buffer.readDoubleBE(17),
    deleteAt: buffer.readDoubleBE(25),
  };
}

export const originOf = (buffer: Buffer): LoadOrigin => ({
  run: buffer.toString('latin1', RUN_AT, RUN_AT + RUN_LENGTH),
  ban: buffer.readDoubleBE(BAN_AT),
});

/** Shifts the times of an entry from the future: the clock of its instance is ahead. */
export function withoutSkew(entry: Entry, now: number): Entry {
  const skewMs = entry.requestedAt - now;
  if (skewMs <= 0) return entry;
  const staleAt = Math.max(0, entry.staleAt - skewMs);
  return { ...entry, requestedAt: now, staleAt, deleteAt: entry.deleteAt - skewMs };
}

const hasOurHeader = (buffer: Buffer): boolean =>
  buffer.length >= HEADER_BYTES &&
  buffer.toString('latin1', 0, 3) === MAGIC &&
  buffer.readUInt8(3) === VERSION &&
  buffer.readUInt32BE(CHECKSUM_AT) === checksumOf(buffer);

const checksumOf = (buffer: Buffer): number =>
  crc32(buffer.subarray(CHECKED_FROM), buffer.readUInt8(4) % STALE_KINDS);
