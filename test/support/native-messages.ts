// Builds native protocol requests as a Java client sends them, and reads responses.
import type { Host } from '../../src/host.js';
import type { Context } from '../../src/context.js';
import { handleRef } from '../../src/handle/handle.js';
import { createAnswer, type NativeAnswer, type Resolve } from '../../src/plugins/native/answer.js';
import {
  type Envelope,
  type Version,
  ENVELOPE_BYTES,
  decodeEnvelope,
  type Header,
  OP_CODE,
  OP_FLAG,
  UNKNOWN_SERIAL,
  encodeMessage,
  frame,
  readMessage,
  type ResponseBody,
} from '../../src/plugins/native/codec.js';
import type { Transport } from '../../src/plugins/native/reply.js';
import { NO_SITE } from '../../src/plugins/native/site-record.js';
import { encodeResolution } from '../../src/cli/native-client.js';
import { decodeResponse } from './native-decoder.js';
import { partial } from './partial.js';

/** The flags of a normal resolution. */
export const PUBLIC = OP_FLAG.recursive | OP_FLAG.cacheCertify | OP_FLAG.publicOnly;

export interface NativeQuestion {
  opCode?: number;
  flags?: number;
  indexes?: number[];
  types?: string[];
  version?: Version;
  requestId?: number;
  sessionId?: number;
  isEncrypted?: boolean;
}

const VERSION: Version = { major: 2, minor: 11 };

/** Returns the envelope and message of a request. */
export function nativeRequest(handle: string, question: NativeQuestion = {}): Buffer {
  const { opCode = OP_CODE.resolution, flags = PUBLIC, indexes = [], types = [] } = question;
  const { version = VERSION, requestId = 1, sessionId = 0, isEncrypted = false } = question;
  const header = {
    opCode,
    responseCode: 0,
    flags,
    siteSerial: UNKNOWN_SERIAL,
    recursionCount: 0,
    expiration: 0,
  };
  const body = encodeResolution({ handle: Buffer.from(handle), indexes, types });
  return frame(
    {
      version,
      suggested: VERSION,
      isCompressed: false,
      isEncrypted,
      isTruncated: false,
      sessionId,
      requestId,
      sequence: 0,
    },
    encodeMessage({ header, body, credential: Buffer.alloc(0) }),
  );
}

export interface NativeResponse {
  envelope: Envelope;
  header: Header;
  body: ResponseBody;
}

/** @throws Error unless the bytes are exactly one complete response */
export function readResponse(bytes: Buffer): NativeResponse {
  const envelope = decodeEnvelope(bytes);
  const message = readMessage(bytes.subarray(ENVELOPE_BYTES));
  const response = decodeResponse(message, {
    hasDigest: (message.header.flags & OP_FLAG.returnDigest) !== 0,
  });
  if (!response.ok) throw new Error(response.problem);
  if (envelope.length !== bytes.length - ENVELOPE_BYTES) throw new Error('more than one message');
  return { envelope, header: message.header, body: response.value.body };
}

/** Creates the message handling without cache and site record. */
export function createUncached(
  context: Context,
  resolve: Resolve,
  { isLarge } = { isLarge: false },
): NativeAnswer {
  const refOf = (text: string) => handleRef(text, false);
  const cache = { memory: { isLarge: () => isLarge } };
  const prepared = { answer: () => undefined, prepareMessage: () => undefined };
  return createAnswer(partial<Host>({ ...context, refOf, cache }), partial(prepared), resolve, NO_SITE);
}

/** Resolves a message without a socket. */
export async function askNative(
  { answer }: NativeAnswer,
  handle: string,
  { transport = 'tcp', ...question }: NativeQuestion & { transport?: Transport } = {},
): Promise<NativeResponse> {
  const bytes = nativeRequest(handle, question);
  const envelope = decodeEnvelope(bytes);
  const message = bytes.subarray(ENVELOPE_BYTES);
  const { reply } = await answer({ envelope, message, transport, received: bytes });
  return readResponse(frame(reply.envelope, reply.message));
}

export const codeOf = ({ header }: NativeResponse): number => header.responseCode;

/** Returns the TTLs of the values in a response. */
export const ttlsIn = ({ body }: NativeResponse): (number | string)[] | undefined =>
  body.kind === 'record' ? body.values.map(({ ttl }) => ttl ?? NaN) : undefined;

/** Returns the indexes of the values in a response. */
export const indexesIn = ({ body }: NativeResponse): number[] | undefined =>
  body.kind === 'record' ? body.values.map(({ index }) => index) : undefined;

export const textIn = ({ body }: NativeResponse): string | undefined =>
  body.kind === 'text' ? body.text : undefined;
