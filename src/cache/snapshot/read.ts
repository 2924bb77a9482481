// Reads a snapshot block by block. What cannot be used is refused, and the rest is read.
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';
import type { KeyedEntry } from '../memory/memory-store.js';
import {
  BLOCK_HEAD_BYTES,
  type BlockHead,
  HEAD_BYTES,
  decodeBlockHead,
  decodeContent,
  decodeHead,
  isIntact,
  restOfHead,
} from './blocks.js';

/** `foreign`: of another upstream. `unknown`: no snapshot, or of another version. */
export type Refusal = 'unknown' | 'foreign' | 'damaged' | 'incomplete';

/** The entries of a block, or why a block, or the rest of the file, is refused. */
export type SnapshotPart = { entries: KeyedEntry[] } | { refused: Refusal };

/** The next bytes; fewer than wanted at the end of the file. */
export type Take = (length: number) => Promise<Buffer>;

const inflate = promisify(inflateRaw);

/** One block is read and decompressed while the one before is used. */
export async function* readSnapshot(take: Take, identity: string): AsyncGenerator<SnapshotPart> {
  const refused = await readHead(take, identity);
  if (refused === undefined) yield* readBlocks(take);
  else yield { refused };
}

interface ReadBlock {
  /** None for the end. */
  part?: SnapshotPart;
  isLast: boolean;
}

async function* readBlocks(take: Take): AsyncGenerator<SnapshotPart> {
  for (let next = readBlock(take); ;) {
    const { part, isLast } = await next;
    if (!isLast) {
      next = readBlock(take);
      next.catch(() => undefined);
    }
    if (part) yield part;
    if (isLast) return;
  }
}

async function readBlock(take: Take): Promise<ReadBlock> {
  const bytes = await take(BLOCK_HEAD_BYTES);
  const head = decodeBlockHead(bytes);
  if (head === undefined)
    return { part: { refused: bytes.length < BLOCK_HEAD_BYTES ? 'incomplete' : 'damaged' }, isLast: true };
  if (head.payloadBytes === 0) return { isLast: true };
  const payload = await take(head.payloadBytes);
  if (payload.length < head.payloadBytes) return { part: { refused: 'incomplete' }, isLast: true };
  const entries = await readEntries(payload, head);
  return { part: entries === undefined ? { refused: 'damaged' } : { entries }, isLast: false };
}

async function readHead(take: Take, identity: string): Promise<Refusal | undefined> {
  const start = await take(HEAD_BYTES);
  const length = restOfHead(start);
  const found = length === undefined ? undefined : decodeHead(start, await take(length));
  if (found === undefined) return 'unknown';
  return found === identity ? undefined : 'foreign';
}

async function readEntries(payload: Buffer, head: BlockHead): Promise<KeyedEntry[] | undefined> {
  if (!isIntact(payload, head)) return undefined;
  try {
    const content = await inflate(payload, { maxOutputLength: head.contentBytes });
    return content.length === head.contentBytes ? decodeContent(content) : undefined;
  } catch {
    return undefined;
  }
}
