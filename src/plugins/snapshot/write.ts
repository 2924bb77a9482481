// Writes a snapshot to a temporary file, which replaces the previous snapshot once it is complete and on
// disk.
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { constants, deflateRaw } from 'node:zlib';
import type { KeyedEntry } from '../../cache/entry.js';
import { ContentBuffer, END, encodeBlock, encodeHead } from './format.js';

/** Maximum number of blocks compressed concurrently, each on a separate thread. */
const MAX_COMPRESSING = 2;

export interface WrittenSnapshot {
  records: number;
  bytes: number;
}

export interface SnapshotSource {
  identity: string;
  /** The entries in slices. */
  slices: Iterable<readonly KeyedEntry[]>;
  /** Awaited after each slice. */
  pace: () => Promise<void> | undefined;
  signal: AbortSignal;
}

/**
 * Writes a snapshot atomically. @throws Error when the disk cannot be written or the signal aborts; the
 * previous snapshot then remains
 */
export async function writeSnapshot(file: string, source: SnapshotSource): Promise<WrittenSnapshot> {
  const temporary = `${file}.tmp`;
  try {
    const written = await writeFile(temporary, source);
    source.signal.throwIfAborted();
    await rename(temporary, file);
    await syncFolder(dirname(file));
    return written;
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

async function writeFile(temporary: string, source: SnapshotSource): Promise<WrittenSnapshot> {
  // A file left by a killed process may have a different mode.
  await unlink(temporary).catch(() => undefined);
  const handle = await open(temporary, 'wx', 0o600);
  try {
    const written = await writeBlocks(handle, source);
    await handle.sync();
    return written;
  } finally {
    await handle.close();
  }
}

async function writeBlocks(
  handle: FileHandle,
  { identity, slices, pace, signal }: SnapshotSource,
): Promise<WrittenSnapshot> {
  const content = new ContentBuffer();
  const compressing: Promise<Buffer>[] = [];
  const written = { records: 0, bytes: 0 };
  const append = async (bytes: Buffer): Promise<void> => {
    await handle.writeFile(bytes);
    written.bytes += bytes.length;
  };
  /** Compresses the current block on a different thread, and appends blocks in order until `left` remain. */
  const endBlock = async (left: number): Promise<void> => {
    const block = compress(content.take());
    block.catch(() => undefined);
    compressing.push(block);
    for (const next of compressing.splice(0, compressing.length - left)) await append(await next);
  };
  await append(encodeHead(identity));
  for (const entries of slices) {
    for (const kept of entries) {
      content.add(kept);
      // Checking before the call avoids a promise for each record.
      if (content.isFull) await endBlock(MAX_COMPRESSING);
    }
    written.records += entries.length;
    await pace();
    signal.throwIfAborted();
  }
  await endBlock(0);
  await append(END);
  return written;
}

const deflate = promisify(deflateRaw);

async function compress(content: Buffer): Promise<Buffer> {
  if (content.length === 0) return content;
  return encodeBlock(await deflate(content, { level: constants.Z_BEST_SPEED }), content.length);
}

/**
 * Syncs the folder. Before that, a power loss may restore the previous snapshot. Some file systems cannot
 * sync folders.
 */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().catch(() => undefined);
  await handle.close();
}
