// Reads streams: content codings (RFC 9110 §8.4.1) within a limit, and the lines of text files.
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { type Duplex, PassThrough, type Readable, type Transform, pipeline } from 'node:stream';
import zlib, { createGunzip } from 'node:zlib';
import { appendChunk } from './bytes.js';

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;

const DECOMPRESSORS = {
  gzip: zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
};

type Coding = keyof typeof DECOMPRESSORS;

/** Whether the coding is known. Its name is untrusted, for example `constructor`. */
export const isCoding = (name: string): name is Coding => Object.hasOwn(DECOMPRESSORS, name);

/** Size of the pieces in which a body is decompressed and counted. */
const PIECE_BYTES = 64 * 1024;

/** Creates a decompressor. Like browsers, it accepts a body without its last bytes if it `acceptsCut`. */
export function createDecompressor(coding: Coding, { acceptsCut = false } = {}): Transform {
  const flush = coding === 'br' ? BROTLI_OPERATION_FLUSH : Z_SYNC_FLUSH;
  return DECOMPRESSORS[coding]({ chunkSize: PIECE_BYTES, ...(acceptsCut && { finishFlush: flush }) });
}

/** Decompresses a body. `onSize` is called with the size so far; its error ends the work. @throws a zlib error */
export async function decompressBody(
  body: Buffer,
  decompressor: Transform,
  onSize: (size: number, pieceBytes: number) => void,
): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0);
  let size = 0;
  for await (const piece of decompressor.end(body) as AsyncIterable<Buffer>) {
    size += piece.length;
    onSize(size, piece.length);
    bytes = appendChunk(bytes, size - piece.length, piece);
  }
  return bytes.subarray(0, size);
}

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
