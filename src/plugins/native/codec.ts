// Pure codec of the protocol (RFC 3651, RFC 3652): envelope, packets, messages, requests, responses.
import { ByteReader, ByteWriter, LengthLimitError } from '../../handle/bytes.js';
import { writeValue } from '../../handle/value-data.js';
import type { HandleValue } from '../../handle/value.js';
import { createHash } from 'node:crypto';

/** A decoded value, or the problem text for the response. */
export type Decoded<T> = { ok: true; value: T } | { ok: false; problem: string };

/** Converts a reader's RangeError, caused by malformed bytes, to a problem. */
export function decoded<T>(read: () => T): Decoded<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof RangeError) return { ok: false, problem: error.message };
    throw error;
  }
}

// Envelope: 20 bytes before each message on TCP and HTTP, or each packet on UDP (RFC 3652 §2.1.2).

export const ENVELOPE_BYTES = 20;
/** Maximum bytes after the envelope: clients reject longer messages (hdllib Common.MAX_MESSAGE_LENGTH). */
export const MAX_MESSAGE_BYTES = 262_144;
/** Length of a message without body (bytes); Handle servers reject shorter messages. */
export const MIN_MESSAGE_BYTES = 24;

export interface Version {
  major: number;
  minor: number;
}

export const OWN_VERSION: Version = { major: 2, minor: 11 };

/** An envelope without the length of its message. */
export interface EnvelopeHead {
  version: Version;
  /** Highest version that the sender supports; major 0 means this message's version. */
  suggested: Version;
  isCompressed: boolean;
  isEncrypted: boolean;
  /** Whether the packet is a message fragment. */
  isTruncated: boolean;
  /** 0 without a session. */
  sessionId: number;
  requestId: number;
  /** Packet number, from 0. */
  sequence: number;
}

export interface Envelope extends EnvelopeHead {
  /** Length of the whole message, not of the packet (bytes). */
  length: number;
}

const COMPRESSED = 0x80;
const ENCRYPTED = 0x40;
const TRUNCATED = 0x20;
/** Mask of the suggested major version. */
const MAJOR = 0x03;

/** Decodes an envelope; that of fewer than ENVELOPE_BYTES bytes has the length 0, which is invalid. */
export function decodeEnvelope(received: Buffer): Envelope {
  const bytes = received.length < ENVELOPE_BYTES ? Buffer.alloc(ENVELOPE_BYTES) : received;
  const bits = bytes.readUInt8(2);
  return {
    version: { major: bytes.readUInt8(0), minor: bytes.readUInt8(1) },
    suggested: { major: bits & MAJOR, minor: bytes.readUInt8(3) },
    isCompressed: (bits & COMPRESSED) !== 0,
    isEncrypted: (bits & ENCRYPTED) !== 0,
    isTruncated: (bits & TRUNCATED) !== 0,
    sessionId: bytes.readInt32BE(4),
    requestId: bytes.readInt32BE(8),
    sequence: bytes.readInt32BE(12),
    length: bytes.readInt32BE(16),
  };
}

export function encodeEnvelope(envelope: Envelope): Buffer {
  const { version, suggested, isCompressed, isEncrypted, isTruncated } = envelope;
  const bits =
    (isCompressed ? COMPRESSED : 0) |
    (isEncrypted ? ENCRYPTED : 0) |
    (isTruncated ? TRUNCATED : 0) |
    (suggested.major & MAJOR);
  const bytes = Buffer.alloc(ENVELOPE_BYTES);
  bytes.set([version.major, version.minor, bits, suggested.minor]);
  bytes.writeInt32BE(envelope.sessionId, 4);
  bytes.writeInt32BE(envelope.requestId, 8);
  bytes.writeInt32BE(envelope.sequence, 12);
  bytes.writeInt32BE(envelope.length, 16);
  return bytes;
}

const rankOf = ({ major, minor }: Version): number => major * 256 + minor;

/** Returns the response version: the suggested version, at most our own, or else that of the message. */
export function negotiateVersion({ version, suggested }: EnvelopeHead): Version {
  if (suggested.major === 0) return version;
  return rankOf(suggested) > rankOf(OWN_VERSION) ? OWN_VERSION : suggested;
}

/** Whether a version precedes 2.`minor`. Old clients send 5.0 for 2.0. */
export const isEarlier = (version: Version, minor: number): boolean =>
  rankOf(version) < rankOf({ major: 2, minor }) || (version.major === 5 && version.minor === 0);

// Messages in UDP packets of 512 bytes (RFC 3652 §2.1.2: TruncatedMessage, SequenceNumber).

/** Message bytes per packet, without its envelope. */
export const PACKET_BYTES = 492;
export const FULL_PACKET_BYTES = ENVELOPE_BYTES + PACKET_BYTES;

export const packetsOf = (length: number): number => Math.max(1, Math.ceil(length / PACKET_BYTES));

/** Splits a message into packets, full but for the last; each envelope has the length of the message. */
export function toPackets(envelope: EnvelopeHead, message: Buffer): Buffer[] {
  const count = packetsOf(message.length);
  return Array.from({ length: count }, (_, sequence) => {
    const start = sequence * PACKET_BYTES;
    const head = { ...envelope, isTruncated: count > 1, sequence, length: message.length };
    return Buffer.concat([encodeEnvelope(head), message.subarray(start, start + PACKET_BYTES)]);
  });
}

// Messages: header, body and credential (RFC 3652 §2.2), framed as envelope and message.

export const OP_FLAG = {
  /** In a request: bypass caches. In a response: sent by a primary server. */
  authoritative: 1 << 31,
  /** The response must be signed. */
  certify: 1 << 30,
  encrypt: 1 << 29,
  /** The server may resolve other servers' handles. */
  recursive: 1 << 28,
  /** A cache may sign the response. */
  cacheCertify: 1 << 27,
  publicOnly: 1 << 24,
  /** The response body must start with a request digest. */
  returnDigest: 1 << 23,
  doNotRefer: 1 << 20,
} as const;

export const OP_CODE = { reserved: 0, resolution: 1, siteInfo: 2 } as const;

export interface Header {
  opCode: number;
  /** 0 in requests. */
  responseCode: number;
  /** OP_FLAG bits, as a signed integer. */
  flags: number;
  /** Site record serial number: the client's copy in a request, the server's in a response. */
  siteSerial: number;
  recursionCount: number;
  /** Seconds since the epoch. Clients drop expired responses. */
  expiration: number;
}

export interface NativeMessage {
  header: Header;
  body: Buffer;
  /** Undefined if the message ends after the body. */
  credential: Buffer | undefined;
}

/** Length of the header with the body length after it (bytes). Byte 15 is reserved. */
const HEADER_BYTES = 24;
/** Serial number if the site record is unknown. */
export const UNKNOWN_SERIAL = 0xffff;

/** Decodes the bytes after the envelope. @throws RangeError for a malformed message */
export function readMessage(bytes: Buffer): NativeMessage {
  const reader = new ByteReader(bytes);
  const head = reader.take(HEADER_BYTES - 4);
  const header = {
    opCode: head.readInt32BE(0),
    responseCode: head.readInt32BE(4),
    flags: head.readInt32BE(8),
    siteSerial: head.readUInt16BE(12),
    recursionCount: head.readUInt8(14),
    expiration: head.readInt32BE(16),
  };
  return { header, body: reader.sized(), credential: reader.remaining < 4 ? undefined : reader.sized() };
}

export function encodeMessage({ header, body, credential }: NativeMessage): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.writeInt32BE(header.opCode, 0);
  head.writeInt32BE(header.responseCode, 4);
  head.writeInt32BE(header.flags, 8);
  head.writeUInt16BE(header.siteSerial, 12);
  head.writeUInt8(header.recursionCount, 14);
  head.writeInt32BE(header.expiration, 16);
  head.writeInt32BE(body.length, 20);
  if (credential === undefined) return Buffer.concat([head, body]);
  const length = Buffer.alloc(4);
  length.writeInt32BE(credential.length);
  return Buffer.concat([head, body, length, credential]);
}

export function frame(envelope: EnvelopeHead, message: Buffer): Buffer {
  return Buffer.concat([encodeEnvelope({ ...envelope, length: message.length }), message]);
}

// Requests: header, digested bytes, and the handle and filters of a resolution (RFC 3652 §3.2.1).

export interface ResolutionRequest {
  /** Usually UTF-8; the response echoes it byte for byte. */
  handle: Buffer;
  /** Selects values that match `indexes` or `types`; selects all if both are empty. */
  indexes: number[];
  types: string[];
}

export interface Request {
  header: Header;
  /** Undefined unless the operation is a resolution. */
  resolution: ResolutionRequest | undefined;
  /** Raw header and body, the input of the request digest. */
  digested: Buffer;
}

/** Handle servers read shorter messages into a zeroed buffer of this size, so missing lists are empty. */
const PADDED_BYTES = 1024;

/** Op codes in hdllib AbstractMessage except resolution and site information. */
const KNOWN = new Set([
  100, 101, 102, 103, 104, 105, 200, 201, 300, 301, 302, 400, 401, 402, 1000, 1001, 1002, 1003,
]);

/** Decodes the bytes after the envelope. `isPadded` pads short messages, which the tunnel rejects. */
export function decodeRequest(bytes: Buffer, { isPadded }: { isPadded: boolean }): Decoded<Request> {
  const request = decoded(() => readRequest(bytes));
  if (request.ok || !isPadded || bytes.length >= PADDED_BYTES) return request;
  const padded = Buffer.alloc(PADDED_BYTES);
  bytes.copy(padded);
  return decoded(() => readRequest(padded));
}

/** Maximum indexes, and types, of a request: hdllib reads at most this many values of a response (Common.java). */
const MAX_SELECTED = 2048;

function readRequest(bytes: Buffer): Request {
  const { header, body } = readMessage(bytes);
  const { opCode, responseCode } = header;
  const isResolution = opCode === OP_CODE.resolution;
  if (!isResolution && opCode !== OP_CODE.siteInfo && !KNOWN.has(opCode))
    throw new RangeError(`Unknown opCode in message: ${opCode}`);
  if (responseCode !== 0) throw new RangeError('a response, not a request');
  const digested = bytes.subarray(0, HEADER_BYTES + body.length);
  if (!isResolution) return { header, resolution: undefined, digested };
  // Reads both lists to their end, regardless of the body length, as a Handle server does.
  const reader = new ByteReader(bytes.subarray(HEADER_BYTES));
  const handle = reader.sized();
  const indexes = reader.elements(() => reader.int32(), MAX_SELECTED);
  const types = reader.elements(() => reader.sizedText(), MAX_SELECTED);
  return { header, resolution: { handle, indexes, types }, digested };
}

// Response bodies (RFC 3652 §3.2.2, §3.3, §3.4), and the digest.

export type ResponseBody =
  | { kind: 'record' | 'referral'; handle: Buffer; values: HandleValue[] }
  /** HS_SITE data. */
  | { kind: 'site'; site: Buffer }
  | { kind: 'challenge'; nonce: Buffer }
  | { kind: 'text'; text: string };

function encodeBodyWithin(maxBytes: number, body: ResponseBody): Buffer {
  switch (body.kind) {
    case 'site':
      return body.site;
    case 'challenge':
      return new ByteWriter().sized(body.nonce).finish();
    case 'text':
      return new ByteWriter().sizedText(body.text).finish();
    default: {
      const writer = new ByteWriter(maxBytes).sized(body.handle).int32(body.values.length);
      for (const value of body.values) writeValue(writer, value);
      return writer.finish();
    }
  }
}

/** Encodes a body, with work in proportion to `maxBytes`; undefined if it is longer. @throws for an unknown data format */
export function encodeBody(body: ResponseBody, maxBytes: number): Buffer | undefined {
  try {
    return encodeBodyWithin(maxBytes, body);
  } catch (error) {
    if (error instanceof LengthLimitError) return undefined;
    throw error;
  }
}

/** `code` precedes the digest; before 2.1 without a flag (recording "CERT+RRDG in protocol 2.0"). */
const MD5 = { code: 0, algorithm: 'md5' };
const SHA1 = { code: 2, algorithm: 'sha1' };
const SHA256 = { code: 3, algorithm: 'sha256' };

/** Encodes the digest of a request's header and body, which precedes the response body. */
export function encodeDigest(version: Version, digested: Buffer): Buffer {
  const { code, algorithm } = isEarlier(version, 1) ? MD5 : isEarlier(version, 7) ? SHA1 : SHA256;
  return Buffer.concat([Buffer.of(code), createHash(algorithm).update(digested).digest()]);
}
