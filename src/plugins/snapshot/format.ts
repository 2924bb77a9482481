// The snapshot format. A damaged payload costs its block, a damaged block head the rest of the file.
import { promisify } from 'node:util';
import { crc32, inflateRaw } from 'node:zlib';
import { type Cursor, type KeyedEntry, maxEncodedBytes, readEntry, writeEntry } from '../../cache/entry.js';
import { toBytes, toText, tryDecode } from '../../handle/bytes.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../../handle/handle.js';
import { parseJson } from '../../handle/json.js';
import { type HandleValue, assertValue, isPublic } from '../../handle/value.js';

// file: MAGIC, a block with the identity, blocks of entries, END
// block: MARK, payload length, content length, payload CRC-32, CRC-32 of these four, payload
// The payload of an entry block is its compressed content: entries without checksums. END is an empty block,
// which a truncated file lacks.
// Increment the version in MAGIC with every layout change; entries are versioned separately.
const MAGIC = 'HRPSNAP3';
const MARK = 'HRPB';
export const MAGIC_BYTES = MAGIC.length;
export const BLOCK_HEAD_BYTES = 20;
/** Maximum block that is read, in one turn of the event loop. Half of it bounds an entry. */
const MAX_BLOCK_BYTES = 8 * 1024 ** 2;
/** Content of a block. Larger blocks hardly compress better, and delay requests longer when decoded. */
const CONTENT_BYTES = 256 * 1024;
/** Bounds of a part, whose entries are decoded and restored in one turn of the event loop. */
const PART_ENTRIES = 200;
const PART_BYTES = 256 * 1024;
/** Headroom for the last record of a block, so that most blocks fit into the initial buffer. */
const HEADROOM_BYTES = 16 * 1024;
const NO_BYTES = Buffer.alloc(0);

/** `foreign`: a snapshot of a different upstream. `unknown`: not a snapshot, or a different version. */
export type SnapshotRejection = 'unknown' | 'foreign' | 'damaged' | 'incomplete';

/** Some entries of a block, or the reason why the block or the rest of the file is rejected. */
export type SnapshotPart = { entries: KeyedEntry[] } | { rejected: SnapshotRejection };

/** Returns the next `length` bytes; fewer at the end of the file. */
export type Take = (length: number) => Promise<Buffer>;

interface BlockHead {
  payloadBytes: number;
  contentBytes: number;
  checksum: number;
}

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

  /** Returns the content, which is then compressed, so that the next block needs a new buffer. */
  take(): Buffer {
    const content = this.#into.bytes.subarray(0, this.#into.at);
    this.#into.bytes = NO_BYTES;
    this.#into.at = 0;
    return content;
  }

  #reserve(length: number): void {
    const { bytes, at } = this.#into;
    if (at + length <= bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(at + length, CONTENT_BYTES + HEADROOM_BYTES));
    bytes.copy(larger, 0, 0, at);
    this.#into.bytes = larger;
  }
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

export const END = encodeBlock(NO_BYTES, 0);

/** Encodes the head. `identity` names the upstream: a snapshot of a different upstream is rejected. */
export function encodeHead(identity: string): Buffer {
  const name = Buffer.from(identity);
  return Buffer.concat([Buffer.from(MAGIC, 'latin1'), encodeBlock(name, name.length)]);
}

/** Yields the parts, up to the end or to the rejection of the rest. */
export async function* readSnapshot(take: Take, identity: string): AsyncGenerator<SnapshotPart, void> {
  const rejected = await readHead(take, identity);
  let block = rejected === undefined ? await readBlock(take) : { rejected };
  while (!('rejected' in block) && block.payload.length > 0) {
    const content = await inflatedContent(block);
    if (content === undefined) yield { rejected: 'damaged' };
    else yield* readEntries(content);
    block = await readBlock(take);
  }
  if ('rejected' in block) yield block;
}

async function readHead(take: Take, identity: string): Promise<SnapshotRejection | undefined> {
  if ((await take(MAGIC_BYTES)).toString('latin1') !== MAGIC) return 'unknown';
  const block = await readBlock(take);
  if ('rejected' in block || !isRecordIntact(block)) return 'unknown';
  return block.payload.toString() === identity ? undefined : 'foreign';
}

interface Block extends BlockHead {
  payload: Buffer;
}

/** Reads a block. After a rejection, the position of the next block is unknown. */
async function readBlock(take: Take): Promise<Block | { rejected: SnapshotRejection }> {
  const bytes = await take(BLOCK_HEAD_BYTES);
  const head = decodeBlockHead(bytes);
  if (head === undefined) return { rejected: bytes.length < BLOCK_HEAD_BYTES ? 'incomplete' : 'damaged' };
  const payload = await take(head.payloadBytes);
  return payload.length < head.payloadBytes ? { rejected: 'incomplete' } : { ...head, payload };
}

export function decodeBlockHead(head: Buffer): BlockHead | undefined {
  if (head.length < BLOCK_HEAD_BYTES || head.toString('latin1', 0, 4) !== MARK) return undefined;
  if (crc32(head.subarray(0, 16)) !== head.readUInt32BE(16)) return undefined;
  const [payloadBytes, contentBytes] = [head.readUInt32BE(4), head.readUInt32BE(8)];
  if (payloadBytes > MAX_BLOCK_BYTES || contentBytes > MAX_BLOCK_BYTES) return undefined;
  return { payloadBytes, contentBytes, checksum: head.readUInt32BE(12) };
}

const isRecordIntact = ({ payload, checksum }: Block): boolean => crc32(payload) === checksum;

const inflate = promisify(inflateRaw);

/** Returns the content of a block; undefined if the block is damaged. */
async function inflatedContent(block: Block): Promise<Buffer | undefined> {
  if (!isRecordIntact(block)) return undefined;
  const content = await inflate(block.payload, { maxOutputLength: block.contentBytes }).catch(
    () => undefined,
  );
  return content?.length === block.contentBytes ? content : undefined;
}

/** Decodes the entries of a block, up to an entry of a different version. */
function* readEntries(content: Buffer): Generator<SnapshotPart, void> {
  let [entries, end]: [KeyedEntry[], number] = [[], PART_BYTES];
  for (const from = { bytes: content, at: 0 }; from.at < content.length;) {
    const kept = readEntry(from);
    if (kept === undefined) {
      yield { rejected: 'damaged' };
      return;
    }
    entries.push(kept);
    if (entries.length < PART_ENTRIES && from.at < end && from.at < content.length) continue;
    yield { entries };
    [entries, end] = [[], from.at + PART_BYTES];
  }
}

/** Formats a record; undefined for a not-found answer, because exports contain only records. */
export function formatRecordLine({ key, entry }: KeyedEntry): string | undefined {
  if (entry.kind === 'not-found') return undefined;
  const times = [entry.requestedAt, entry.staleAt, entry.deleteAt];
  const [requestedAt, staleAt, deleteAt] = times.map((ms) => new Date(ms).toISOString());
  const head = JSON.stringify({ handle: key, requestedAt, staleAt, deleteAt });
  // The values are already JSON.
  return `${head.slice(0, -1)},"values":${entry.kind === 'found' ? toText(entry.values) : '[]'}}\n`;
}

/** Parses a record, without values that are not public, because the file is untrusted. */
export function parseRecordLine(line: string, refOf: (text: string) => HandleRef): KeyedEntry | undefined {
  const { handle, values, ...times } = (tryDecode(parseJson, line) ?? {}) as Record<string, unknown>;
  if (typeof handle !== 'string' || !isLineHandle(handle)) return undefined;
  const [requestedAt, staleAt, deleteAt] = ['requestedAt', 'staleAt', 'deleteAt'].map((name) =>
    readTime(times[name]),
  ) as [number, number, number];
  if (!Array.isArray(values) || !values.every(isLineValue)) return undefined;
  if ([requestedAt, staleAt, deleteAt].some(Number.isNaN)) return undefined;
  const shown = values.filter(isPublic);
  const isEmpty = shown.length === 0;
  return {
    key: refOf(handle).key,
    entry: {
      kind: isEmpty ? 'empty' : 'found',
      values: toBytes(isEmpty ? '' : JSON.stringify(shown)),
      message: '',
      ...{ requestedAt, staleAt, deleteAt },
    },
  };
}

/** The end of the year 9999: with `cache.staleIfError` added, the end of all dates could not be written. */
const LAST_TIME = Date.UTC(10_000);

/** Reads a time; NaN if it is none of the years 1970 to 9999. */
function readTime(given: unknown): number {
  const time = typeof given === 'string' ? Date.parse(given) : NaN;
  return time >= 0 && time < LAST_TIME ? time : NaN;
}

const isLineHandle = (text: string): boolean =>
  text !== '' && !text.includes('\0') && Buffer.byteLength(text) <= MAX_HANDLE_BYTES;

function isLineValue(given: unknown): given is HandleValue {
  const value = tryDecode(assertValue, given);
  return typeof value?.data === 'object' && value.data !== null;
}
