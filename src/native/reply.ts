// The answer to a request: version, flags, expiration and digest around its outcome.
import { randomInt } from 'node:crypto';
import { type Envelope, OWN_VERSION, isBefore, negotiateVersion } from './codec/envelope.js';
import { OP_FLAG, encodeMessage } from './codec/message.js';
import type { Request } from './codec/request.js';
import { encodeBody, encodeDigest } from './codec/response.js';
import type { Outcome } from './outcome.js';

/** The answer as it is sent by any interface. */
export interface Reply {
  envelope: Omit<Envelope, 'length'>;
  message: Buffer;
}

/** A reply, and what it says for log and metrics. */
export interface Answered {
  reply: Reply;
  /** Undefined for what is no request. */
  opCode: number | undefined;
  handle: string | undefined;
  outcome: Outcome;
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

const NO_CREDENTIAL = Buffer.alloc(0);

/** Undefined when the message is too long. @throws when the data of a value is not of a known format */
export function createReply(
  { envelope, request }: { envelope: Envelope; request: Request },
  { responseCode, body }: Outcome,
  { now, siteSerial, maxBytes }: ReplyContext,
): Reply | undefined {
  const encoded = encodeBody(body, maxBytes);
  if (encoded === undefined) return undefined;
  const version = negotiateVersion(envelope);
  const isChallenge = body.kind === 'challenge';
  const isDigestWanted = isChallenge || (request.header.flags & OP_FLAG.returnDigest) !== 0;
  // Before 2.1 there was no flag for the digest.
  const digestFlag = isDigestWanted && !isBefore(version, 1) ? OP_FLAG.returnDigest : 0;
  const flags = (request.header.flags & COPIED & ~OP_FLAG.returnDigest) | OP_FLAG.recursive | digestFlag;
  const parts = [...(isDigestWanted ? [encodeDigest(version, request.digested)] : []), encoded];
  if (isChallenge && isBefore(version, 1)) parts.reverse();
  const { opCode, recursionCount } = request.header;
  const header = { opCode, responseCode, flags, siteSerial, recursionCount, expiration: expirationAt(now) };
  const message = encodeMessage({ header, body: Buffer.concat(parts), credential: NO_CREDENTIAL });
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
