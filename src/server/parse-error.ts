// Bytes that Node's parser refuses: answered as JSON like everything else, then the connection is closed.
import type { Duplex } from 'node:stream';
import { type IncomingMessage, METHODS, STATUS_CODES } from 'node:http';
import { ServiceError } from '../errors.js';
import { bodyOfMembers, JSON_TYPE } from '../http/body.js';
import { responseUnderWay } from './current-response.js';

interface ParserError extends Error {
  code?: string;
  rawPacket?: Buffer;
}

/** Sockets that were told already: whatever else comes over them is not looked at. */
const refused = new WeakSet<Duplex>();

/** Answers on the bare socket: no request exists that a route could answer. */
export function answerClientError(error: ParserError, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
  } else if (!refused.has(socket)) {
    refused.add(socket);
    refuseInTurn(readClientError(error), socket);
  }
}

/** CONNECT: no tunnels. Node has let go of the socket by then, its errors included. */
export function refuseConnect({ method = '' }: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => socket.destroy()).resume();
  socket.once('finish', () => socket.destroy());
  refuseInTurn(unknownMethodError(method), socket);
}

/**
 * Answers come in the order of the requests (RFC 9112 §9.3.2): those under way go first. When it is the
 * body of a request under way that is broken, this is its answer, unless one has begun already.
 */
function refuseInTurn(failure: ServiceError, socket: Duplex): void {
  const response = responseUnderWay(socket);
  if (!socket.writable) {
    socket.destroy();
  } else if (response?.req.complete) {
    response.once('close', () => {
      refuseInTurn(failure, socket);
    });
  } else if (response?.headersSent) {
    socket.destroy();
  } else {
    refuse(failure, socket);
  }
}

function refuse(failure: ServiceError, socket: Duplex): void {
  const json = bodyOfMembers({ responseCode: failure.responseCode, message: failure.message }, undefined);
  const head = [
    `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status] ?? 'Error'}`,
    `Content-Type: ${JSON_TYPE}`,
    `Content-Length: ${Buffer.byteLength(json)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${json}`);
}

function readClientError({ code, rawPacket }: ParserError): ServiceError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ServiceError(isStillInRequestLine(rawPacket) ? 'REQUEST_LINE_TOO_LONG' : 'HEADERS_TOO_LARGE');
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ServiceError('REQUEST_TIMEOUT');
  const method = code === 'HPE_INVALID_METHOD' ? unknownMethod(rawPacket) : undefined;
  return method === undefined ? new ServiceError('BAD_REQUEST') : unknownMethodError(method);
}

const unknownMethodError = (method: string): ServiceError =>
  new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${method}` });

/**
 * A method Node does not know is a token (RFC 9110 §5.6.2) before a target; anything else is noise. The
 * packet may begin with good requests that came before it.
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
