// Answers that are packed although nothing but plain ones is asked for: gateways in front of a server do that.
import type { IncomingMessage } from 'node:http';
import { type Readable, pipeline } from 'node:stream';
import zlib from 'node:zlib';

/** More than one is rare; each is a machine that unpacks what the one before it has unpacked. */
const MOST_CODINGS = 5;

// Servers leave out the last bytes at times: what is there counts, as with browsers.
const LENIENT = { flush: zlib.constants.Z_SYNC_FLUSH, finishFlush: zlib.constants.Z_SYNC_FLUSH };
const { BROTLI_OPERATION_FLUSH: flush } = zlib.constants;

// A map: the names come from outside, and an object would know `constructor` too.
const UNPACK = new Map<string, () => NodeJS.ReadWriteStream>([
  ['gzip', () => zlib.createGunzip(LENIENT)],
  ['x-gzip', () => zlib.createGunzip(LENIENT)],
  ['deflate', () => zlib.createInflate(LENIENT)],
  ['br', () => zlib.createBrotliDecompress({ flush, finishFlush: flush })],
]);

/** The body without its codings. Where one of them is unknown it stays as it is. */
export function decoded(response: IncomingMessage, fail: (error: Error) => void): Readable {
  const codings = response.headers['content-encoding'];
  if (codings === undefined || codings === 'identity') return response;
  const names = codings.toLowerCase().split(',').reverse();
  if (names.length > MOST_CODINGS) {
    fail(new Error(`too many content codings: ${names.length}`));
    return response;
  }
  const steps = names.map((name) => UNPACK.get(name.trim()));
  if (!steps.every((step) => step !== undefined)) return response;
  const unpackers = steps.map((step) => step());
  // Errors reach the last of them, where they are listened to.
  pipeline([response, ...unpackers], () => undefined);
  return unpackers.at(-1) as unknown as Readable;
}
