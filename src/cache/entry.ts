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

/** Stale by every clock, also one that is set back later. */
export const asStale = <T extends Times>(entry: T): T => ({ ...entry, staleAt: 0 });

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
const VERSION = 5;
export const KINDS = ['found', 'empty', 'not-found'] as const;
/** In Redis the byte of the kind is raised by this when the entry is stale (redis/coherence-scripts.ts, ENTRY). */
const STALE_KINDS = KINDS.length;
const HEADER_BYTES = 69;
const BAN_AT = 45;
const RUN_AT = 53;
/** Characters of a server run. */
export const RUN_LENGTH = 16;
/** The checksum (CRC-32) of all that follows it; it begins with the kind. */
const CHECKSUM_AT = 5;
const CHECKED_FROM = 9;

/** What was true in Redis when an entry was asked for: the server run, and the number of the newest ban. */
export interface LoadOrigin {
  run: string;
  ban: number;
}

/** Writes an entry, together with its key and its origin, as one buffer. */
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
  header.writeDoubleBE(entry.cachedAt, 9);
  header.writeDoubleBE(entry.staleAt, 17);
  header.writeDoubleBE(entry.deleteAt, 25);
  header.writeDoubleBE(ban, BAN_AT);
  header.write(run, RUN_AT, RUN_LENGTH, 'latin1');
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
  return {
    kind,
    message: buffer.toString('utf8', HEADER_BYTES + keyLength, valuesAt),
    values: fromBuffer(buffer.subarray(valuesAt)),
    cachedAt: buffer.readDoubleBE(9),
    staleAt: isStale ? 0 : buffer.readDoubleBE(17),
    deleteAt: buffer.readDoubleBE(25),
  };
}

/** The origin of a stored entry. */
export const originOf = (buffer: Buffer): LoadOrigin => ({
  run: buffer.toString('latin1', RUN_AT, RUN_AT + RUN_LENGTH),
  ban: buffer.readDoubleBE(BAN_AT),
});

/** An entry of an instance whose clock is ahead, by the clock of this one: it was loaded now at the latest. */
export function withoutSkew(entry: Entry, now: number): Entry {
  const skewMs = entry.cachedAt - now;
  if (skewMs <= 0) return entry;
  const staleAt = Math.max(0, entry.staleAt - skewMs);
  return { ...entry, cachedAt: now, staleAt, deleteAt: entry.deleteAt - skewMs };
}

const hasOurHeader = (buffer: Buffer): boolean =>
  buffer.length >= HEADER_BYTES &&
  buffer.toString('latin1', 0, 3) === MAGIC &&
  buffer.readUInt8(3) === VERSION &&
  buffer.readUInt32BE(CHECKSUM_AT) === checksumOf(buffer);

const checksumOf = (buffer: Buffer): number =>
  crc32(buffer.subarray(CHECKED_FROM), buffer.readUInt8(4) % STALE_KINDS);
