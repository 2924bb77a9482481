// The lines of a stream, or of a text file, which may be compressed with gzip.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { type Duplex, PassThrough, type Readable, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** @throws Error when the file cannot be read */
export async function* readFileLines(file: string): AsyncGenerator<string> {
  const unpack = (await isGzip(file)) ? createGunzip() : new PassThrough();
  // Opened only now: an earlier error would be unhandled.
  yield* streamLines(createReadStream(file), unpack);
}

/** @throws Error when the input fails, after the lines before the failure */
export async function* streamLines(
  input: Readable,
  unpack: Duplex = new PassThrough(),
): AsyncGenerator<string> {
  let failure: Error | null | undefined;
  pipeline(input, unpack, (error) => {
    failure = error;
  });
  const lines = createInterface({ input: unpack, crlfDelay: Infinity });
  // When the reader stops early the streams are destroyed, and nothing else listens for their errors.
  for (const each of [input, unpack, lines]) each.on('error', () => undefined);
  for await (const line of lines) yield line;
  // The line reader ends normally even if the input has failed.
  if (failure) throw failure;
}

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file, 'r');
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2).finally(() => handle.close());
  return bytesRead === 2 && buffer.readUInt16BE(0) === 0x1f8b;
}
