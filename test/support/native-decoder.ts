// Decodes responses of every kind of the native protocol.
import { takeDigest, takeValues } from '../../src/cli/native-client.js';
import { ByteReader } from '../../src/handle/bytes.js';
import { RESPONSE_CODE } from '../../src/handle/outcome.js';
import type { HandleValue } from '../../src/handle/value.js';
import {
  type Decoded,
  type Header,
  type NativeMessage,
  OP_CODE,
  type ResponseBody,
  decoded,
} from '../../src/plugins/native/codec.js';

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
    const digest = hasDigest ? takeDigest(reader) : Buffer.alloc(0);
    return { digest, body: readBody(reader, message.header) };
  });
}

function readBody(reader: ByteReader, { opCode, responseCode }: Header): ResponseBody {
  const { success, authenticationNeeded, serviceReferral, prefixReferral } = RESPONSE_CODE;
  if (responseCode === authenticationNeeded) return { kind: 'challenge', nonce: reader.sized() };
  if (responseCode === serviceReferral || responseCode === prefixReferral) {
    return { kind: 'referral', ...takeRecord(reader) };
  }
  if (responseCode !== success) return { kind: 'text', text: reader.sizedText() };
  if (opCode === OP_CODE.siteInfo) return { kind: 'site', site: reader.take(reader.remaining) };
  return { kind: 'record', ...takeRecord(reader) };
}

/** Reads a handle and its values. A referral may end after the handle. */
function takeRecord(reader: ByteReader): { handle: Buffer; values: HandleValue[] } {
  return { handle: reader.sized(), values: takeValues(reader) };
}
