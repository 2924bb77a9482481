// One cache entry: what is known of one handle, until when, and the bytes it is stored as.
import { crc32 } from 'node:zlib';
import { type Bytes, fromBuffer, toBuffer } from '../handle/bytes.js';
import type { Answer } from '../handle/outcome.js';

/** What is known of a handle. All times are milliseconds since the epoch. */
export interface Entry {
  kind: Answer['kind'];
  /** Public values as a JSON array; empty for `empty` and `not-found`. */
  values: Bytes;
  /** Why the server says there is no such handle; usually nothing. */
  message: string;
  /** When the upstream was asked. */
  cachedAt: number;
  /** From here on the upstream has to be asked. */
  staleAt: number;
  /** Until here the entry may stand in for an upstream that fails. */
  deleteAt: number;
}

/** From when on it is known, and how long it is fresh. */
export type Times = Pick<Entry, 'cachedAt' | 'staleAt'>;

export const isSame = (one: Entry, other: Entry): boolean =>
  one.cachedAt === other.cachedAt &&
  one.staleAt === other.staleAt &&
  one.deleteAt === other.deleteAt &&
  hasSameContent(one, other);

/** Whether both say the same of the handle. */
export const hasSameContent = (one: Entry, other: Entry): boolean =>
  one.kind === other.kind && one.values === other.values && one.message === other.message;

// A stored entry of another release is a miss, never misread: change VERSION with the layout.
const MAGIC = 'HRP';
const VERSION = 4;
export const KINDS = ['found', 'empty', 'not-found'] as const;
/** In Redis the byte of the kind is raised by this when the entry may only stand in (see SOFTEN). */
const STALE_KINDS = KINDS.length;
const HEADER_BYTES = 53;
const SWEEP_AT = 45;
/** The checksum (CRC-32) of all that follows it; it begins with the kind. */
const CHECKSUM_AT = 5;
const CHECKED_FROM = 9;

/** Writes an entry, together with its key and the newest sweep when it was asked for, as one buffer. */
export function encodeEntry(key: string, entry: Entry, sweep = 0): Buffer {
  const parts = [Buffer.from(key), Buffer.from(entry.message), toBuffer(entry.values)] as const;
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGIC, 0, 'latin1');
  header.writeUInt8(VERSION, 3);
  header.writeUInt8(KINDS.indexOf(entry.kind), 4);
  header.writeDoubleBE(entry.cachedAt, 9);
  header.writeDoubleBE(entry.staleAt, 17);
  header.writeDoubleBE(entry.deleteAt, 25);
  header.writeDoubleBE(sweep, SWEEP_AT);
  parts.forEach((part, at) => header.writeUInt32BE(part.length, 33 + at * 4));
  const whole = Buffer.concat([header, ...parts]);
  whole.writeUInt32BE(checksumOf(whole), CHECKSUM_AT);
  return whole;
}

/** Reads an entry back. Another version, another key or a damaged buffer is undefined: a miss. */
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
  const cachedAt = buffer.readDoubleBE(9);
  return {
    kind,
    message: buffer.toString('utf8', HEADER_BYTES + keyLength, valuesAt),
    values: fromBuffer(buffer.subarray(valuesAt)),
    cachedAt,
    staleAt: isStale ? cachedAt : buffer.readDoubleBE(17),
    deleteAt: buffer.readDoubleBE(25),
  };
}

/** The newest sweep that was known when a stored entry was asked for. */
export const sweepOf = (buffer: Buffer): number => buffer.readDoubleBE(SWEEP_AT);

const hasOurHeader = (buffer: Buffer): boolean =>
  buffer.length >= HEADER_BYTES &&
  buffer.toString('latin1', 0, 3) === MAGIC &&
  buffer.readUInt8(3) === VERSION &&
  buffer.readUInt32BE(CHECKSUM_AT) === checksumOf(buffer);

const checksumOf = (buffer: Buffer): number =>
  crc32(buffer.subarray(CHECKED_FROM), buffer.readUInt8(4) % STALE_KINDS);
