// A message: header, body and credential (RFC 3652 §2.2), and the whole of envelope and message as it is sent.
import { ByteReader, sized } from '../../handle/bytes.js';
import { type Envelope, encodeEnvelope } from './envelope.js';

export const OP_FLAG = {
  /** Request: pass no cache. Answer: from a primary server. */
  authoritative: 1 << 31,
  /** The answer must be signed. */
  certify: 1 << 30,
  encrypt: 1 << 29,
  /** The server may resolve what it does not have. */
  recursive: 1 << 28,
  /** A cache may sign. */
  cacheCertify: 1 << 27,
  publicOnly: 1 << 24,
  /** The answer must begin with a digest of the request. */
  returnDigest: 1 << 23,
  doNotRefer: 1 << 20,
} as const;

export const OP_CODE = {
  reserved: 0,
  resolution: 1,
  siteInfo: 2,
} as const;

export interface Header {
  opCode: number;
  /** 0 in requests. */
  responseCode: number;
  /** OP_FLAG bits, as a signed integer. */
  flags: number;
  /** Serial number of the site record: the client's in a request, the server's own in an answer. */
  siteSerial: number;
  recursionCount: number;
  /** Seconds since 1970. Clients drop an answer that expired. */
  expiration: number;
}

export interface Message {
  header: Header;
  body: Buffer;
  /** Undefined when the message ends before its length. */
  credential: Buffer | undefined;
}

export const HEADER_BYTES = 24;
/** Neither this serial number of a site nor an older one is known. */
export const UNKNOWN_SERIAL = 0xffff;

/** @throws RangeError when the bytes, which follow the envelope, are not a message */
export function readMessage(bytes: Buffer): Message {
  const reader = new ByteReader(bytes);
  const header = readHeader(reader);
  const body = reader.sized();
  return { header, body, credential: reader.remaining < 4 ? undefined : reader.sized() };
}

function readHeader(reader: ByteReader): Header {
  const opCode = reader.int32();
  const responseCode = reader.int32();
  const flags = reader.int32();
  const siteSerial = reader.int16();
  const recursionCount = reader.byte();
  // Reserved.
  reader.byte();
  return { opCode, responseCode, flags, siteSerial, recursionCount, expiration: reader.int32() };
}

export function encodeMessage({ header, body, credential }: Message): Buffer {
  const parts = [encodeHeader(header), sized(body)];
  return Buffer.concat(credential === undefined ? parts : [...parts, sized(credential)]);
}

/** Without the length of the body. */
function encodeHeader(header: Header): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES - 4);
  bytes.writeInt32BE(header.opCode, 0);
  bytes.writeInt32BE(header.responseCode, 4);
  bytes.writeInt32BE(header.flags, 8);
  bytes.writeUInt16BE(header.siteSerial, 12);
  bytes.writeUInt8(header.recursionCount, 14);
  bytes.writeInt32BE(header.expiration, 16);
  return bytes;
}

/** The bytes on TCP and HTTP: one envelope, then the message. */
export function frame(envelope: Omit<Envelope, 'length'>, message: Buffer): Buffer {
  return Buffer.concat([encodeEnvelope({ ...envelope, length: message.length }), message]);
}
