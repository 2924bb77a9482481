// The format of a snapshot: a head, blocks of entries with a checksum each, and an end. Bytes in, entries out.
import { crc32 } from 'node:zlib';
import { type Cursor, maxEncodedBytes, readEntry, writeEntry } from '../entry.js';
import type { KeyedEntry } from '../memory/memory-store.js';

// head:  MAGIC, length of the identity, identity, CRC-32 of all that
// block: MARK, length of the payload, length of its content, CRC-32 of the payload, CRC-32 of these four, payload
// The payload is the content, compressed. The content is entries without a checksum of their own. The end is a block
// without content: a file that is cut off between two blocks has none.
// Increment the version with every change of the layout; entries have a version of their own.
const MAGIC = 'HRPSNAP2';
const MARK = 'HRPB';
export const HEAD_BYTES = 12;
const CHECKSUM_BYTES = 4;
export const BLOCK_HEAD_BYTES = 20;
const MAX_IDENTITY_BYTES = 65_536;
/** Longer blocks are not read; an entry that would need one is not written. */
const MAX_BLOCK_BYTES = 32 * 1024 ** 2;
/** Larger ones are hardly smaller when they are compressed, and take longer to decode while requests wait. */
const CONTENT_BYTES = 256 * 1024;
/** For the record that fills a block, without a larger buffer for most. */
const SPARE_BYTES = 16 * 1024;
const NO_BYTES = Buffer.alloc(0);

export interface BlockHead {
  payloadBytes: number;
  contentBytes: number;
  checksum: number;
}

/** `identity` names what the entries are of: a snapshot of another upstream is refused. */
export function encodeHead(identity: string): Buffer {
  const name = Buffer.from(identity);
  const head = Buffer.alloc(HEAD_BYTES + name.length + CHECKSUM_BYTES);
  head.write(MAGIC, 'latin1');
  head.writeUInt32BE(name.length, MAGIC.length);
  name.copy(head, HEAD_BYTES);
  head.writeUInt32BE(crc32(head.subarray(0, -CHECKSUM_BYTES)), head.length - CHECKSUM_BYTES);
  return head;
}

/** How many bytes follow the first part of the head; undefined when it is none. */
export function restOfHead(start: Buffer): number | undefined {
  if (start.length < HEAD_BYTES || start.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined;
  const length = start.readUInt32BE(MAGIC.length);
  return length > MAX_IDENTITY_BYTES ? undefined : length + CHECKSUM_BYTES;
}

/** The identity; undefined for a damaged head. */
export function decodeHead(start: Buffer, rest: Buffer): string | undefined {
  if (rest.length !== restOfHead(start)) return undefined;
  const name = rest.subarray(0, -CHECKSUM_BYTES);
  const isIntact = crc32(name, crc32(start)) === rest.readUInt32BE(name.length);
  return isIntact ? name.toString() : undefined;
}

/** The content of one block, as it fills. */
export class ContentBuffer {
  readonly #into: Cursor = { bytes: NO_BYTES, at: 0 };

  add({ key, entry }: KeyedEntry): void {
    const needed = maxEncodedBytes(key, entry);
    if (needed > MAX_BLOCK_BYTES / 2) return;
    this.#reserve(needed);
    writeEntry(this.#into, { key, entry });
  }

  get isFull(): boolean {
    return this.#into.at >= CONTENT_BYTES;
  }

  /** The next block has a buffer of its own: this one is compressed meanwhile. */
  take(): Buffer {
    const content = this.#into.bytes.subarray(0, this.#into.at);
    this.#into.bytes = NO_BYTES;
    this.#into.at = 0;
    return content;
  }

  #reserve(length: number): void {
    const { bytes, at } = this.#into;
    if (at + length <= bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(at + length, CONTENT_BYTES + SPARE_BYTES));
    bytes.copy(larger, 0, 0, at);
    this.#into.bytes = larger;
  }
}

/** The entries; undefined when one of them is of another version. The checksum of the block says that they are intact. */
export function decodeContent(content: Buffer): KeyedEntry[] | undefined {
  const entries: KeyedEntry[] = [];
  for (const from = { bytes: content, at: 0 }; from.at < content.length;) {
    const kept = readEntry(from);
    if (kept === undefined) return undefined;
    entries.push(kept);
  }
  return entries;
}

export function encodeBlock(payload: Buffer, contentBytes: number): Buffer {
  const head = Buffer.alloc(BLOCK_HEAD_BYTES);
  head.write(MARK, 'latin1');
  head.writeUInt32BE(payload.length, 4);
  head.writeUInt32BE(contentBytes, 8);
  head.writeUInt32BE(crc32(payload), 12);
  head.writeUInt32BE(crc32(head.subarray(0, 16)), 16);
  return Buffer.concat([head, payload]);
}

export const END = encodeBlock(Buffer.alloc(0), 0);

/** Undefined for a damaged head: the place of the next block is not known then. */
export function decodeBlockHead(head: Buffer): BlockHead | undefined {
  if (head.length < BLOCK_HEAD_BYTES || head.toString('latin1', 0, 4) !== MARK) return undefined;
  if (crc32(head.subarray(0, 16)) !== head.readUInt32BE(16)) return undefined;
  const [payloadBytes, contentBytes] = [head.readUInt32BE(4), head.readUInt32BE(8)];
  if (payloadBytes > MAX_BLOCK_BYTES || contentBytes > MAX_BLOCK_BYTES) return undefined;
  return { payloadBytes, contentBytes, checksum: head.readUInt32BE(12) };
}

export const isIntact = (payload: Buffer, { checksum }: BlockHead): boolean => crc32(payload) === checksum;
