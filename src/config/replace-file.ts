// Replaces a file as a whole: until the new one is complete and on the disk, the one before remains.
import { open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Writes chunks to a temporary file, which `replace` renames. Returns its length (bytes). @throws Error when this fails */
export async function replaceFile(
  file: string,
  chunks: Iterable<string> | AsyncIterable<Buffer>,
  replace = (temporary: string): Promise<void> => rename(temporary, file),
): Promise<number> {
  const temporary = `${file}.tmp`;
  try {
    // A file left by a killed process may have a different mode.
    await unlink(temporary).catch(() => undefined);
    // Opened first: a stream that fails while it opens its file would create the file after its removal below.
    const output = (await open(temporary, 'wx', 0o600)).createWriteStream({ flush: true });
    await pipeline(chunks, output);
    await replace(temporary);
    await syncFolder(dirname(file));
    return output.bytesWritten;
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

/** Syncs the folder, if this user may read it and its file system can, so that a power loss restores no older file. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  await handle?.sync().catch(() => undefined);
  await handle?.close();
}
