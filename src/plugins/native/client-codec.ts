// The client side of the native protocol (RFC 3652 §3.2): encodes resolutions, and decodes responses with
// their values.
import { ByteReader, int32, sized } from '../../handle/bytes.js';
import { RESPONSE_CODE } from '../../handle/outcome.js';
import { DEFAULT_PERMISSIONS, type HandleValue, type Ttl } from '../../handle/value.js';
import {
  type Decoded,
  decoded,
  type Header,
  type NativeMessage,
  OP_CODE,
  type ResolutionRequest,
  type ResponseBody,
} from './codec.js';
import { decodeData } from '../../handle/value-data.js';

export const encodeResolution = ({ handle, indexes, types }: ResolutionRequest): Buffer =>
  Buffer.concat([
    sized(handle),
    int32(indexes.length),
    ...indexes.map(int32),
    int32(types.length),
    ...types.map(sized),
  ]);

interface Response {
  /** The digest as `encodeDigest` writes it; empty if there is none. */
  digest: Buffer;
  body: ResponseBody;
}

/** Decodes a response. `hasDigest` is the response's flag; before protocol 2.1, the request's. */
export function decodeResponse(
  message: NativeMessage,
  { hasDigest }: { hasDigest: boolean },
): Decoded<Response> {
  return decoded(() => {
    const reader = new ByteReader(message.body);
    const digest = hasDigest ? readDigest(reader) : Buffer.alloc(0);
    return { digest, body: readBody(reader, message.header) };
  });
}

/** Digest lengths by code: MD5 (two codes), SHA-1, SHA-256. */
const DIGEST_BYTES = new Map([
  [0, 16],
  [1, 16],
  [2, 20],
  [3, 32],
]);

function readDigest(reader: ByteReader): Buffer {
  const code = reader.byte();
  const bytes = DIGEST_BYTES.get(code);
  if (bytes === undefined) throw new RangeError('an unknown digest algorithm');
  return Buffer.concat([Buffer.of(code), reader.take(bytes)]);
}

function readBody(reader: ByteReader, { opCode, responseCode }: Header): ResponseBody {
  const { success, authenticationNeeded, serviceReferral, prefixReferral } = RESPONSE_CODE;
  if (responseCode === authenticationNeeded) return { kind: 'challenge', nonce: reader.sized() };
  if (responseCode === serviceReferral || responseCode === prefixReferral) {
    return { kind: 'referral', ...takeRecord(reader) };
  }
  if (responseCode !== success) return { kind: 'text', text: reader.text() };
  if (opCode === OP_CODE.siteInfo) return { kind: 'site', site: reader.take(reader.remaining) };
  return { kind: 'record', ...takeRecord(reader) };
}

/** Reads a handle and its values. A referral may end after the handle. */
function takeRecord(reader: ByteReader): { handle: Buffer; values: HandleValue[] } {
  const handle = reader.sized();
  return { handle, values: reader.remaining === 0 ? [] : reader.list(() => takeValue(reader)) };
}

const ABSOLUTE = 1;

/** Reads a value into JSON with a Handle server's members and order. */
export function takeValue(reader: ByteReader): HandleValue {
  const index = reader.int32();
  const timestamp = reader.int32();
  const ttl = takeTtl(reader);
  const permissions = (reader.byte() & 0x0f).toString(2).padStart(4, '0');
  const type = reader.text();
  const data = decodeData(type, reader.sized());
  const references = reader.list(() => ({ handle: reader.text(), index: reader.int32() }));
  return {
    index,
    type,
    data,
    ...(permissions !== DEFAULT_PERMISSIONS && { permissions }),
    ttl,
    ...(timestamp !== 0 && { timestamp: dateOf(timestamp) }),
    ...(references.length > 0 && { references }),
  };
}

function takeTtl(reader: ByteReader): Ttl {
  const kind = reader.byte();
  const seconds = reader.int32();
  return kind === ABSOLUTE ? dateOf(seconds) : seconds;
}

const dateOf = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');
