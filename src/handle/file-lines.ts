// Reads lines from a stream, or from a text file with optional gzip compression.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { type Duplex, PassThrough, type Readable, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** Yields the lines of a file. @throws Error for an unreadable file */
export async function* readFileLines(file: string): AsyncGenerator<string> {
  const unpack = (await isGzip(file)) ? createGunzip() : new PassThrough();
  // Opened only when read: an earlier error would be unhandled.
  yield* streamLines(createReadStream(file), unpack);
}

/** Yields the lines of a stream. @throws Error for a failed input, after the lines before the failure */
export async function* streamLines(
  input: Readable,
  unpack: Duplex = new PassThrough(),
): AsyncGenerator<string> {
  let failure: Error | null | undefined;
  pipeline(input, unpack, (error) => {
    failure = error;
  });
  const lines = createInterface({ input: unpack, crlfDelay: Infinity });
  // If the consumer stops early, the streams are destroyed without another error listener.
  for (const each of [input, unpack, lines]) each.on('error', () => undefined);
  for await (const line of lines) yield line;
  // The line reader ends normally even after a failed input.
  if (failure) throw failure;
}

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2).finally(() => handle.close());
  return bytesRead === 2 && buffer.readUInt16BE(0) === 0x1f8b;
}
