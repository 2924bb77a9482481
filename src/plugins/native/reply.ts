// Encodes an outcome as a message, with version, flags, expiration and digest.
import { randomInt } from 'node:crypto';
import {
  type Envelope,
  type EnvelopeHead,
  OWN_VERSION,
  isEarlier,
  negotiateVersion,
  OP_FLAG,
  encodeMessage,
  type Request,
  encodeBody,
  encodeDigest,
  type ResponseBody,
  MAX_MESSAGE_BYTES,
  MIN_MESSAGE_BYTES,
  OP_CODE,
  UNKNOWN_SERIAL,
} from './codec.js';
import type { Entry } from '../../cache/entry.js';
import type { ServiceError } from '../../errors.js';
import type { HandleRef } from '../../handle/handle.js';
import { RESPONSE_CODE } from '../../handle/outcome.js';
import type { Result } from '../../http/context.js';
import { resultOfError } from '../../http/error-reply.js';
import { ByteWriter } from '../../handle/bytes.js';

export interface NativeReply {
  envelope: EnvelopeHead;
  message: Buffer;
}

/** A reply with its details for the log and metrics. */
export interface AnsweredMessage {
  reply: NativeReply;
  /** Undefined for a malformed request. */
  opCode: number | undefined;
  handle: HandleRef | undefined;
  outcome: NativeOutcome;
  /** Whether the reply is code 2 because the record is too long. */
  isTooLong: boolean;
}

interface ReplyContext {
  now: number;
  /** Serial number of this instance's site record. */
  siteSerial: number;
  /** Maximum message length without envelope (bytes). */
  maxBytes: number;
}

/** Validity of a response, twelve hours regardless of TTLs. Clients drop expired responses. */
const LIFE_SECONDS = 43_200;

export const expirationAt = (now: number): number => (Math.floor(now / 1000) + LIFE_SECONDS) | 0;

/** Flags copied from the request. Secondary sites copy `authoritative` too, which a primary should set. */
const COPIED =
  OP_FLAG.authoritative |
  OP_FLAG.certify |
  OP_FLAG.encrypt |
  OP_FLAG.cacheCertify |
  OP_FLAG.publicOnly |
  OP_FLAG.returnDigest |
  OP_FLAG.doNotRefer;

const NOTHING = Buffer.alloc(0);

const OWN_ENVELOPE = {
  suggested: OWN_VERSION,
  isCompressed: false,
  isEncrypted: false,
  isTruncated: false,
  sequence: 0,
};

/** Creates the reply; undefined if it is too long. @throws for an unknown data format */
export function createReply(
  { envelope, request }: { envelope: Envelope; request: Request },
  { responseCode, body }: NativeOutcome,
  { now, siteSerial, maxBytes }: ReplyContext,
): NativeReply | undefined {
  const encoded = encodeBody(body, maxBytes);
  if (encoded === undefined) return undefined;
  const version = negotiateVersion(envelope);
  const isChallenge = body.kind === 'challenge';
  const isDigestWanted = isChallenge || (request.header.flags & OP_FLAG.returnDigest) !== 0;
  // Versions before 2.1 have no digest flag.
  const digestFlag = isDigestWanted && !isEarlier(version, 1) ? OP_FLAG.returnDigest : 0;
  const flags = (request.header.flags & COPIED & ~OP_FLAG.returnDigest) | OP_FLAG.recursive | digestFlag;
  const digest = isDigestWanted ? encodeDigest(version, request.digested) : NOTHING;
  // Before 2.1, the digest of a challenge is last, with its length before it (Handle.Net 9.3.1).
  const parts =
    isChallenge && isEarlier(version, 1)
      ? [encoded, new ByteWriter().sized(digest.subarray(1)).finish()]
      : [digest, encoded];
  const { opCode, recursionCount } = request.header;
  const header = { opCode, responseCode, flags, siteSerial, recursionCount, expiration: expirationAt(now) };
  const message = encodeMessage({ header, body: Buffer.concat(parts), credential: NOTHING });
  if (message.length > maxBytes) return undefined;
  return {
    envelope: {
      ...OWN_ENVELOPE,
      version,
      // The client responds to the challenge with this session id, and is rejected with a session timeout.
      sessionId: isChallenge ? randomInt(1, 2 ** 31) : envelope.sessionId,
      requestId: envelope.requestId,
    },
    message,
  };
}

export interface NativeOutcome {
  responseCode: number;
  body: ResponseBody;
  result: Result;
  failure?: ServiceError;
  /** Entry, if fresh and in memory. */
  entry?: Entry | undefined;
}

/** Creates an outcome with only a text, often empty, as on a Handle server. */
export const refusalMessage = (responseCode: number, result: Result, text = ''): NativeOutcome => ({
  responseCode,
  body: { kind: 'text', text },
  result,
});

/** Whether the handle exists; undefined unless the request is an anonymous read. */
export function existsByCode({ result, responseCode }: NativeOutcome): boolean | undefined {
  if (!READS.includes(result)) return undefined;
  return responseCode !== RESPONSE_CODE.handleNotFound;
}

const READS: readonly Result[] = ['hit', 'miss', 'stale', 'authoritative'];

/**
 * Creates the outcome for a failure. On code 2, clients try the next site, as after a failed connection; they
 * treat 3, 4 and 7 as final (recordings "client: fault: UDP answers RC …").
 */
export function failedReply(failure: ServiceError): NativeOutcome {
  const { status, message } = failure;
  return { ...refusalMessage(RESPONSE_CODE.error, resultOfError(status), message), failure };
}

// Responses to malformed messages, with a Handle server's texts: no request id, version 2.3.

export type Transport = 'tcp' | 'udp' | 'tunnel';

export interface MessageProblem {
  responseCode: number;
  text: string;
}

const protocolFailure = (text: string): MessageProblem => ({
  responseCode: RESPONSE_CODE.protocolError,
  text,
});

/** For an unprocessable message, as on a Handle server; the tunnel states the reason instead. */
export const SERVER_ERROR: MessageProblem = {
  responseCode: RESPONSE_CODE.error,
  text: 'Server error processing request, see server logs',
};

export const INVALID_LENGTH = protocolFailure('Invalid message length');
export const READ_TIMED_OUT = protocolFailure('Read timed out');

/** Checks an envelope's message length before buffering any byte. */
export function problemOfLength(length: number, transport: Transport): MessageProblem | undefined {
  if (length >= MIN_MESSAGE_BYTES && length <= MAX_MESSAGE_BYTES) return undefined;
  const isShort = length >= 0 && length < MIN_MESSAGE_BYTES;
  return isShort || transport === 'tunnel' ? INVALID_LENGTH : SERVER_ERROR;
}

/** Response to input that ends before the message is complete. */
export const cutOff = (expected: number, received: number): MessageProblem =>
  protocolFailure(`Expecting ${expected} bytes, only received ${received}`);

/** Response to an encrypted message, which cannot be decrypted without sessions. */
export const encrypted = (sessionId: number): MessageProblem =>
  sessionId > 0
    ? {
        responseCode: RESPONSE_CODE.sessionTimeout,
        text: 'Session information not available or time out. Unable to decrypt request message.',
      }
    : {
        responseCode: RESPONSE_CODE.sessionFailed,
        text: 'Invalid session id. Unable to decrypt request message.',
      };

const NO_OPCODE = `Unknown opCode in message: ${OP_CODE.reserved}`;

/** Response to a malformed message; `problem` is the codec's text. */
export function malformed(problem: string, transport: Transport): MessageProblem {
  if (transport === 'tunnel') return protocolFailure(inTunnel(problem));
  return problem === NO_OPCODE ? protocolFailure(problem) : SERVER_ERROR;
}

function inTunnel(problem: string): string {
  if (problem.startsWith('Unknown opCode')) return `HandleException (INTERNAL_ERROR) ${problem}`;
  if (problem === 'Invalid array size') return `HandleException (MESSAGE_FORMAT_ERROR) ${problem}`;
  return problem;
}

export function replyUnreadable({ responseCode, text }: MessageProblem, now: number): NativeReply {
  const header = {
    opCode: OP_CODE.reserved,
    responseCode,
    flags: OP_FLAG.recursive | OP_FLAG.cacheCertify | OP_FLAG.publicOnly,
    siteSerial: UNKNOWN_SERIAL,
    recursionCount: 0,
    expiration: expirationAt(now),
  };
  return {
    envelope: { ...OWN_ENVELOPE, version: { major: 2, minor: 3 }, sessionId: 0, requestId: -1 },
    message: encodeMessage({ header, body: new ByteWriter().sizedText(text).finish(), credential: NOTHING }),
  };
}
