// Requests: what the answer needs of any, and the handle and filters of a resolution (RFC 3652 §3.2.1).
import { ByteReader } from '../../handle/bytes.js';
import { type Decoded, decoded } from './decoded.js';
import { HEADER_BYTES, type Header, OP_CODE, readMessage } from './message.js';

export interface Resolution {
  /** UTF-8 by custom. The answer names it byte for byte. */
  handle: Buffer;
  /** A union with `types`; all values when both are empty. */
  indexes: number[];
  types: string[];
}

export interface Request {
  header: Header;
  /** Of a resolution only. */
  resolution: Resolution | undefined;
  /** Header and body as they came, for the digest of the request. */
  digested: Buffer;
}

/** Below 1,024 bytes a server reads a message in a buffer of zeros: missing lists are empty. */
const PADDED_BYTES = 1024;

/** Opcodes of hdllib AbstractMessage beside resolution and site information. */
const KNOWN = new Set([
  100, 101, 102, 103, 104, 105, 200, 201, 300, 301, 302, 400, 401, 402, 1000, 1001, 1002, 1003,
]);

/** The bytes follow the envelope. `isPadded`: read as on TCP and UDP; the tunnel is strict. */
export function decodeRequest(bytes: Buffer, { isPadded }: { isPadded: boolean }): Decoded<Request> {
  const request = decoded(() => readRequest(bytes));
  if (request.ok || !isPadded || bytes.length >= PADDED_BYTES) return request;
  const padded = Buffer.alloc(PADDED_BYTES);
  bytes.copy(padded);
  return decoded(() => readRequest(padded));
}

function readRequest(bytes: Buffer): Request {
  const { header, body } = readMessage(bytes);
  const { opCode, responseCode } = header;
  const { resolution, siteInfo } = OP_CODE;
  if (opCode !== resolution && opCode !== siteInfo && !KNOWN.has(opCode)) {
    throw new RangeError(`Unknown opCode in message: ${opCode}`);
  }
  if (responseCode !== 0) throw new RangeError('a response, not a request');
  return {
    header,
    // The lists are read where they are, whatever the length of the body says.
    resolution: opCode === resolution ? readResolution(bytes.subarray(HEADER_BYTES)) : undefined,
    digested: bytes.subarray(0, HEADER_BYTES + body.length),
  };
}

function readResolution(bytes: Buffer): Resolution {
  const reader = new ByteReader(bytes);
  const handle = reader.sized();
  const indexes = reader.list(() => reader.int32());
  return { handle, indexes, types: reader.list(() => reader.text()) };
}
