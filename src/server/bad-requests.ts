// Rejects request heads that a front server may interpret differently, and bytes that Node's parser rejects.
import { type IncomingMessage, METHODS, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServiceError } from '../errors.js';
import { completeError } from '../http/error-reply.js';
import { currentResponse } from './connections.js';
import { discardRest } from './discard.js';

interface Framing {
  /** Reason to reject the request and close its connection; undefined for an unambiguous head. */
  problem: string | undefined;
  /** Whether the head has `Upgrade`, which is ignored because the server offers no other protocol (RFC 9110 §7.8). */
  asksForUpgrade: boolean;
  hasBody: boolean;
}

const HOST = 'host';
const UPGRADE = 'upgrade';
const TRANSFER_ENCODING = 'transfer-encoding';
const CONTENT_LENGTH = 'content-length';

/** Matches `uri-host [":" port]` (RFC 9112 §3.2), or an empty value for a target without authority. */
const HOST_AND_PORT =
  /^(?:\[(?:[\da-f:.]+|v[\da-f]+\.[\w.~!$&'()*+,;=:-]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i;

/** Reused by all calls, so that a hit allocates nothing. */
const found: Framing = { problem: undefined, asksForUpgrade: false, hasBody: false };
const seen = { hosts: 0, host: '', codings: 0, coding: '' };
/** Last valid host, cached because clients repeat it in every request. */
let knownHost = '';

/** Parses the framing of a request. Returns an object that the next call overwrites. */
export function readFraming(req: IncomingMessage): Framing {
  const { rawHeaders } = req;
  seen.hosts = 0;
  seen.codings = 0;
  found.asksForUpgrade = false;
  found.hasBody = false;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const { length } = name;
    if (
      length === HOST.length ||
      length === UPGRADE.length ||
      length === TRANSFER_ENCODING.length ||
      length === CONTENT_LENGTH.length
    ) {
      noteHeader(name.toLowerCase(), rawHeaders[at + 1] as string);
    }
  }
  found.problem = problemOfHead(req);
  return found;
}

function noteHeader(name: string, value: string): void {
  if (name === HOST) {
    seen.hosts++;
    seen.host = value;
  } else if (name === TRANSFER_ENCODING) {
    seen.codings++;
    seen.coding = value;
    found.hasBody = true;
  } else if (name === CONTENT_LENGTH) {
    found.hasBody ||= value !== '0';
  } else if (name === UPGRADE) {
    found.asksForUpgrade = true;
  }
}

function problemOfHead({ httpVersionMajor, httpVersionMinor }: IncomingMessage): string | undefined {
  // HTTP/0.9 has neither status line nor framing (RFC 9112 §3); HTTP/2 is a binary protocol.
  if (httpVersionMajor !== 1) return 'only HTTP/1.1 and HTTP/1.0 are supported';
  if (seen.codings > 0) {
    // HTTP/1.0 does not define this header, so the framing is ambiguous (RFC 9112 §6.1).
    if (httpVersionMinor === 0) return 'Transfer-Encoding is not allowed in HTTP/1.0';
    // Other codings are not decoded; one before chunked hides the body from other servers (RFC 9112 §6.1, §6.3).
    if (seen.codings > 1 || seen.coding.toLowerCase() !== 'chunked')
      return 'the only supported Transfer-Encoding is chunked';
  }
  // Accepts a missing Host, because old clients send none (RFC 9112 §3.2).
  if (seen.hosts > 1) return 'several Host headers';
  return seen.hosts === 0 || isHost(seen.host) ? undefined : 'invalid Host header';
}

function isHost(host: string): boolean {
  if (host === knownHost) return true;
  if (!HOST_AND_PORT.test(host)) return false;
  knownHost = host;
  return true;
}

interface ParserError extends Error {
  code?: string;
  rawPacket?: Buffer;
}

/** Sockets that already got an error response; further bytes are ignored. */
const refused = new WeakSet<Duplex>();

/** Writes to the bare socket, because no request exists. */
export function answerParseError(error: ParserError, socket: Duplex): void {
  // Also a client that has its error response, and does not close in the time for a request.
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
  } else if (!refused.has(socket)) {
    refused.add(socket);
    // Node's parser would return the same error for every further packet.
    discardFollowing(socket.removeAllListeners('data'));
    refuseInOrder(classifyParseError(error), socket);
  }
}

/** Rejects CONNECT. Node has already detached from the socket and does not handle its errors. */
export function refuseConnect({ method = '' }: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => socket.destroy());
  socket.once('finish', () => socket.destroy());
  discardFollowing(socket);
  refuseInOrder(unknownMethodError(method), socket);
}

function discardFollowing(socket: Duplex): void {
  // A server without TLS has no other connections.
  if (socket instanceof Socket) discardRest(socket);
}

/**
 * Rejects after the responses in flight, to preserve order (RFC 9112 §9.3.2). If the broken bytes belong to
 * the body of a request in flight, the error is its response, unless that has already started.
 */
function refuseInOrder(failure: ServiceError, socket: Duplex): void {
  const response = currentResponse(socket);
  if (!socket.writable) {
    socket.destroy();
  } else if (response?.req.complete) {
    response.once('close', () => refuseInOrder(failure, socket));
  } else if (response?.headersSent) {
    socket.destroy();
  } else {
    writeRefusal(failure, socket);
  }
}

function writeRefusal(failure: ServiceError, socket: Duplex): void {
  const { status, headers, body } = completeError(failure);
  const lines = Object.entries({ ...headers, Date: new Date().toUTCString(), Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`, ...lines];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

function classifyParseError({ code, rawPacket }: ParserError): ServiceError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new ServiceError(isStillInRequestLine(rawPacket) ? 'REQUEST_LINE_TOO_LONG' : 'HEADERS_TOO_LARGE');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ServiceError('REQUEST_TIMEOUT');
  const method = code === 'HPE_INVALID_METHOD' ? unknownMethod(rawPacket) : undefined;
  return method === undefined ? new ServiceError('BAD_REQUEST') : unknownMethodError(method);
}

const unknownMethodError = (method: string): ServiceError =>
  new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${method}` });

/**
 * Extracts an unknown method, a token (RFC 9110 §5.6.2) before a target; undefined if the bytes are not a
 * request line. The packet may start with earlier, valid requests.
 */
function unknownMethod(rawPacket: Buffer | undefined): string | undefined {
  const line = rawPacket?.subarray(0, 64).toString('latin1') ?? '';
  const method = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) [/*h]/.exec(line)?.[1];
  return method === undefined || METHODS.includes(method) ? undefined : method;
}

const isStillInRequestLine = (rawPacket: Buffer | undefined): boolean =>
  rawPacket !== undefined &&
  /^[A-Z]+ /.test(rawPacket.toString('latin1', 0, 16)) &&
  !rawPacket.includes('\r\n');
