// Reads streams: content codings (RFC 9110 §8.4.1) within a limit, and the lines of text files.
import { on } from 'node:events';
import { constants, createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
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

/** Longest line (characters): the largest record that can be configured. */
const MAX_LINE_CHARS = 256 * 1024 ** 2;

/** Yields the lines of a file, which may be compressed. @throws Error for an unreadable file, or a line that is too long */
export async function* readFileLines(file: string, maxChars?: number): AsyncGenerator<string> {
  const unpack = (await isGzip(file)) ? createGunzip() : new PassThrough();
  // Opened only when read: an earlier error would be unhandled.
  yield* streamLines(createReadStream(file), { unpack, maxChars });
}

/** Yields the lines of a stream. @throws Error for a failed input or a line that is too long, after the lines before it */
export async function* streamLines(
  input: Readable,
  {
    unpack = new PassThrough(),
    maxChars = MAX_LINE_CHARS,
  }: { unpack?: Duplex; maxChars?: number | undefined } = {},
): AsyncGenerator<string> {
  // By events, because a failed stream drops what its own iterator has not read yet.
  const pieces = on(unpack, 'data', { close: ['end'], ...AHEAD }) as AsyncIterable<[Buffer]>;
  // A failure of the input destroys `unpack`, and so reaches the pieces.
  pipeline(input, unpack, () => undefined);
  // If the consumer stops early, the streams are destroyed without another error listener.
  for (const each of [input, unpack]) each.on('error', () => undefined);
  try {
    yield* splitLines(pieces, maxChars);
  } finally {
    for (const each of [input, unpack]) each.destroy();
  }
}

/** Pieces that are read ahead of the lines. */
const AHEAD = { highWaterMark: 16, lowWaterMark: 1 };

/** Splits at line feeds: `node:readline` holds lines of any length, and since Node.js 24 splits JSON at U+2028. */
async function* splitLines(pieces: AsyncIterable<[Buffer]>, maxChars: number): AsyncGenerator<string> {
  // It removes a byte order mark, with which editors and spreadsheet programs start a file.
  const decoder = new TextDecoder();
  let line = '';
  for await (const [piece] of pieces) {
    const [first = '', ...others] = decoder.decode(piece, { stream: true }).split('\n');
    line = assertLineLength(line + first, maxChars);
    for (const next of others) {
      yield withoutReturn(line);
      line = assertLineLength(next, maxChars);
    }
  }
  if (line !== '') yield withoutReturn(line);
}

/** @throws Error for a line that is too long */
function assertLineLength(line: string, maxChars: number): string {
  if (line.length > maxChars) throw new Error(`a line has more than ${maxChars} characters`);
  return line;
}

const withoutReturn = (line: string): string => (line.endsWith('\r') ? line.slice(0, -1) : line);

/** @throws Error for an unreadable file, and for a named pipe, which may never end */
async function isGzip(file: string): Promise<boolean> {
  // Otherwise opening a named pipe without a writer blocks a thread, for which Node.js waits at exit.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if ((await handle.stat()).isFIFO()) throw new Error('it is a named pipe');
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2);
    return bytesRead === 2 && buffer.readUInt16BE(0) === 0x1f8b;
  } finally {
    await handle.close();
  }
}
