// Writes a snapshot: to a temporary file, which replaces the previous snapshot when it is complete and on disk.
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { constants, deflateRaw } from 'node:zlib';
import type { KeyedEntry } from '../memory/memory-store.js';
import { END, encodeBlock, encodeContent, encodeHead } from './blocks.js';

/** Reading and encoding as much takes a millisecond; requests that arrive meanwhile wait for that. */
export const SLICE_BYTES = 128 * 1024;

export interface WrittenSnapshot {
  records: number;
  bytes: number;
}

interface SnapshotSource {
  identity: string;
  /** The entries, a slice at a time; each is read when the one before is being written. */
  slices: Iterable<readonly KeyedEntry[]>;
  signal: AbortSignal;
}

export const temporaryFile = (file: string): string => `${file}.tmp`;

/** @throws Error when the disk cannot be written, or the signal aborts; then the previous snapshot stays */
export async function writeSnapshot(file: string, source: SnapshotSource): Promise<WrittenSnapshot> {
  const temporary = temporaryFile(file);
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
  // A file that is left of a killed process may have another mode.
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
  { identity, slices, signal }: SnapshotSource,
): Promise<WrittenSnapshot> {
  const written = { records: 0, bytes: 0 };
  const append = async (bytes: Buffer): Promise<void> => {
    await handle.writeFile(bytes);
    written.bytes += bytes.length;
  };
  await append(encodeHead(identity));
  // One block is compressed, on another thread, while the next one is encoded and the previous one written.
  let compressing: Promise<Buffer> | undefined;
  for (const entries of slices) {
    signal.throwIfAborted();
    const next = compress(encodeContent(entries));
    next.catch(() => undefined);
    if (compressing) await append(await compressing);
    compressing = next;
    written.records += entries.length;
  }
  if (compressing) await append(await compressing);
  await append(END);
  return written;
}

const deflate = promisify(deflateRaw);

async function compress(content: Buffer): Promise<Buffer> {
  if (content.length === 0) return content;
  return encodeBlock(await deflate(content, { level: constants.Z_BEST_SPEED }), content.length);
}

/** Until then a loss of power may bring the previous snapshot back. Some file systems cannot do it. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync().catch(() => undefined);
  await handle.close();
}
