// Decompresses a content coding (RFC 9110 §8.4.1) piece by piece, within a limit.
import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { appendChunk } from './bytes.js';

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;

const DECOMPRESSORS = {
  gzip: zlib.createGunzip,
  deflate: zlib.createInflate,
  br: zlib.createBrotliDecompress,
};

export type Coding = keyof typeof DECOMPRESSORS;

/** Whether the coding is known. Its name is untrusted, for example `constructor`. */
export const isCoding = (name: string): name is Coding => Object.hasOwn(DECOMPRESSORS, name);

/** Size of the pieces in which a body is decompressed and counted. */
const PIECE_BYTES = 64 * 1024;

/** Creates a decompressor. Like browsers, it accepts a body without its last bytes if it `acceptsCut`. */
export function createDecompressor(coding: Coding, { acceptsCut = false } = {}): Transform {
  const flush = coding === 'br' ? BROTLI_OPERATION_FLUSH : Z_SYNC_FLUSH;
  return DECOMPRESSORS[coding]({ chunkSize: PIECE_BYTES, ...(acceptsCut && { finishFlush: flush }) });
}

interface CollectOptions {
  maxBytes: number;
  tooLarge: () => Error;
  onPiece?: (bytes: number) => void;
}

/** Decompresses a body. @throws the error of `tooLarge` as soon as the output exceeds `maxBytes`, or a zlib error */
export async function decompressBody(
  body: Buffer,
  decompressor: Transform,
  { maxBytes, tooLarge, onPiece }: CollectOptions,
): Promise<Buffer> {
  let bytes: Buffer = Buffer.alloc(0);
  let size = 0;
  for await (const piece of decompressor.end(body) as AsyncIterable<Buffer>) {
    onPiece?.(piece.length);
    bytes = appendChunk(bytes, size, piece);
    size += piece.length;
    if (size > maxBytes) throw tooLarge();
  }
  return bytes.subarray(0, size);
}
