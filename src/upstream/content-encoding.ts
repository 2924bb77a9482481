// Decompresses response bodies: gateways compress although requests accept identity only.
import { promisify } from 'node:util';
import zlib from 'node:zlib';
import { type UpstreamResponse, bodyTooLarge, headerOf } from './response.js';

/** A body in more codings than this is not decompressed: each could be a bomb inside a bomb. */
const MAX_CODINGS = 5;

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;

type Decode = (body: Buffer, maxOutputLength: number) => Promise<Buffer>;

const gunzip = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip);
const inflate = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate);
const brotli = promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress);

// Some servers leave out the last bytes: like browsers, these accept what there is.
const ungzip: Decode = (body, maxOutputLength) =>
  gunzip(body, { finishFlush: Z_SYNC_FLUSH, maxOutputLength });

/** A Map: the names come from outside, and an object would know `constructor` too. */
const DECODERS = new Map<string, Decode>([
  ['gzip', ungzip],
  ['x-gzip', ungzip],
  ['deflate', (body, maxOutputLength) => inflate(body, { finishFlush: Z_SYNC_FLUSH, maxOutputLength })],
  ['br', (body, maxOutputLength) => brotli(body, { finishFlush: BROTLI_OPERATION_FLUSH, maxOutputLength })],
]);

/** A response whose body is as it arrived. */
export interface EncodedResponse extends Omit<UpstreamResponse, 'body'> {
  body: Buffer;
}

const CONTENT_ENCODING = 'content-encoding';

export const isEncoded = ({ headers, body }: EncodedResponse): boolean =>
  headers[CONTENT_ENCODING] !== undefined && body.length > 0;

/**
 * The body without its content codings; as it is where one of them is unknown.
 *
 * @throws ServiceError UPSTREAM_BAD_ANSWER as soon as more than `maxBodyBytes` come out, or an error of zlib
 */
export async function decodeBody(response: EncodedResponse, maxBodyBytes: number): Promise<Buffer> {
  const { status, body } = response;
  const codings = headerOf(response, CONTENT_ENCODING) ?? '';
  const decoders = codings
    .toLowerCase()
    .split(',')
    .map((name) => DECODERS.get(name.trim()))
    .reverse();
  if (decoders.length > MAX_CODINGS || !decoders.every((decode) => decode !== undefined)) return body;
  let decoded = body;
  try {
    for (const decode of decoders) decoded = await decode(decoded, maxBodyBytes);
  } catch (error) {
    const isTooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw isTooLarge ? bodyTooLarge(status, maxBodyBytes) : error;
  }
  return decoded;
}
