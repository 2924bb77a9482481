// The answer to a request: version, flags, expiration and digest around its outcome.
import { randomInt } from 'node:crypto';
import {
  type Envelope,
  OWN_VERSION,
  isBefore,
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
import type { Entry } from '../cache/entry.js';
import type { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { Result } from '../http/context.js';
import { resultOfError } from '../http/error-reply.js';
import { sized } from '../handle/bytes.js';

/** The answer as it is sent by any interface. */
export interface NativeReply {
  envelope: Omit<Envelope, 'length'>;
  message: Buffer;
}

/** A reply, and what it says for log and metrics. */
export interface AnsweredMessage {
  reply: NativeReply;
  /** Undefined for what is no request. */
  opCode: number | undefined;
  handle: HandleRef | undefined;
  outcome: NativeOutcome;
  /** Whether it is code 2 because the answer is too long. */
  isTooLong: boolean;
}

export interface ReplyContext {
  now: number;
  /** Of the site record that names this instance. */
  siteSerial: number;
  /** Of the message, without its envelope. */
  maxBytes: number;
}

/** An answer holds for twelve hours; its values have TTLs of their own. A client drops one that expired. */
const LIFE_SECONDS = 43_200;

export const expirationAt = (now: number): number => (Math.floor(now / 1000) + LIFE_SECONDS) | 0;

/** A mirror copies `authoritative` too; only a primary sets it. */
const COPIED =
  OP_FLAG.authoritative |
  OP_FLAG.certify |
  OP_FLAG.encrypt |
  OP_FLAG.cacheCertify |
  OP_FLAG.publicOnly |
  OP_FLAG.returnDigest |
  OP_FLAG.doNotRefer;

const NOTHING = Buffer.alloc(0);

/** Undefined when the message is too long. @throws when the data of a value is not of a known format */
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
  // Before 2.1 there was no flag for the digest.
  const digestFlag = isDigestWanted && !isBefore(version, 1) ? OP_FLAG.returnDigest : 0;
  const flags = (request.header.flags & COPIED & ~OP_FLAG.returnDigest) | OP_FLAG.recursive | digestFlag;
  const digest = isDigestWanted ? encodeDigest(version, request.digested) : NOTHING;
  // Before 2.1 the digest of a challenge comes last, its length in place of the code of its algorithm (Handle.Net 9.3.1).
  const parts =
    isChallenge && isBefore(version, 1) ? [encoded, sized(digest.subarray(1))] : [digest, encoded];
  const { opCode, recursionCount } = request.header;
  const header = { opCode, responseCode, flags, siteSerial, recursionCount, expiration: expirationAt(now) };
  const message = encodeMessage({ header, body: Buffer.concat(parts), credential: NOTHING });
  if (message.length > maxBytes) return undefined;
  return {
    envelope: {
      ...envelope,
      version,
      suggested: OWN_VERSION,
      isCompressed: false,
      isEncrypted: false,
      isTruncated: false,
      // Its answer, with this session id, is refused as that of a session that timed out.
      sessionId: isChallenge ? randomInt(1, 2 ** 31) : envelope.sessionId,
      sequence: 0,
    },
    message,
  };
}

// What becomes of a request: response code and body, and the result for log and metrics.

export interface NativeOutcome {
  responseCode: number;
  body: ResponseBody;
  result: Result;
  failure?: ServiceError;
  /** The fresh entry in memory that it was made of. */
  entry?: Entry;
}

/** A response without anything but a text, which a server often leaves empty. */
export const refusal = (responseCode: number, result: Result, text = ''): NativeOutcome => ({
  responseCode,
  body: { kind: 'text', text },
  result,
});

/**
 * A client takes response code 2 for a failed connection and asks the next site. 3, 4 and 7 it takes for the answer
 * (recordings "client: fault: UDP answers RC …").
 */
export function failed(failure: ServiceError): NativeOutcome {
  const { status, message } = failure;
  return { ...refusal(RESPONSE_CODE.error, resultOfError(status), message), failure };
}

// Answers to messages that cannot be read, in the words of a Handle server: of no request, in version 2.3.

/** The interface by which a message came. */
export type Transport = 'tcp' | 'udp' | 'tunnel';

export interface MessageProblem {
  responseCode: number;
  text: string;
}

const protocolError = (text: string): MessageProblem => ({ responseCode: RESPONSE_CODE.protocolError, text });

/** The text of a Handle server on TCP and UDP for a message that it cannot process; in the tunnel it gives the reason. */
export const SERVER_ERROR: MessageProblem = {
  responseCode: RESPONSE_CODE.error,
  text: 'Server error processing request, see server logs',
};

export const INVALID_LENGTH = protocolError('Invalid message length');
export const READ_TIMED_OUT = protocolError('Read timed out');

/** Judges the length in an envelope before a byte of the message is kept. */
export function problemOfLength(length: number, transport: Transport): MessageProblem | undefined {
  if (length >= MIN_MESSAGE_BYTES && length <= MAX_MESSAGE_BYTES) return undefined;
  const isShort = length >= 0 && length < MIN_MESSAGE_BYTES;
  return isShort || transport === 'tunnel' ? INVALID_LENGTH : SERVER_ERROR;
}

/** The input ended before the message. */
export const cutOff = (expected: number, received: number): MessageProblem =>
  protocolError(`Expecting ${expected} bytes, only received ${received}`);

/** There are no sessions, and so no keys. */
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

/** `problem` is what the codec found. */
export function malformed(problem: string, transport: Transport): MessageProblem {
  if (transport === 'tunnel') return protocolError(inTunnel(problem));
  return problem === NO_OPCODE ? protocolError(problem) : SERVER_ERROR;
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
    envelope: {
      version: { major: 2, minor: 3 },
      suggested: OWN_VERSION,
      isCompressed: false,
      isEncrypted: false,
      isTruncated: false,
      sessionId: 0,
      requestId: -1,
      sequence: 0,
    },
    message: encodeMessage({
      header,
      body: sized(text),
      credential: Buffer.alloc(0),
    }),
  };
}
