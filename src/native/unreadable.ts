// Answers to messages that cannot be read, in the words of a Handle server: of no request, in version 2.3.
import { sized } from '../handle/bytes.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { MAX_MESSAGE_BYTES, MIN_MESSAGE_BYTES, OWN_VERSION } from './codec/envelope.js';
import { OP_CODE, OP_FLAG, UNKNOWN_SERIAL, encodeMessage } from './codec/message.js';
import { type Reply, expirationAt } from './reply.js';

/** The interface by which a message came. */
export type Transport = 'tcp' | 'udp' | 'tunnel';

export interface Problem {
  responseCode: number;
  text: string;
}

const protocolError = (text: string): Problem => ({ responseCode: RESPONSE_CODE.protocolError, text });

/** The text of a Handle server on TCP and UDP for a message that it cannot process; in the tunnel it gives the reason. */
export const SERVER_ERROR: Problem = {
  responseCode: RESPONSE_CODE.error,
  text: 'Server error processing request, see server logs',
};

export const INVALID_LENGTH = protocolError('Invalid message length');
export const READ_TIMED_OUT = protocolError('Read timed out');

/** Judges the length in an envelope before a byte of the message is kept. */
export function problemOfLength(length: number, transport: Transport): Problem | undefined {
  if (length >= MIN_MESSAGE_BYTES && length <= MAX_MESSAGE_BYTES) return undefined;
  const isShort = length >= 0 && length < MIN_MESSAGE_BYTES;
  return isShort || transport === 'tunnel' ? INVALID_LENGTH : SERVER_ERROR;
}

/** The input ended before the message. */
export const cutOff = (expected: number, received: number): Problem =>
  protocolError(`Expecting ${expected} bytes, only received ${received}`);

/** There are no sessions, and so no keys. */
export const encrypted = (sessionId: number): Problem =>
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
export function malformed(problem: string, transport: Transport): Problem {
  if (transport === 'tunnel') return protocolError(inTunnel(problem));
  return problem === NO_OPCODE ? protocolError(problem) : SERVER_ERROR;
}

function inTunnel(problem: string): string {
  if (problem.startsWith('Unknown opCode')) return `HandleException (INTERNAL_ERROR) ${problem}`;
  if (problem === 'Invalid array size') return `HandleException (MESSAGE_FORMAT_ERROR) ${problem}`;
  return problem;
}

export function replyUnreadable({ responseCode, text }: Problem, now: number): Reply {
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
