// Responds with a JSON error to bytes that Node's parser rejects, then closes the connection.
import type { Duplex } from 'node:stream';
import { type IncomingMessage, METHODS, STATUS_CODES } from 'node:http';
import { ServiceError } from '../errors.js';
import { completeError } from '../http/guard.js';
import { currentResponse } from './connections.js';

interface ParserError extends Error {
  code?: string;
  rawPacket?: Buffer;
}

/** Sockets that already got an error response; further bytes are ignored. */
const refused = new WeakSet<Duplex>();

/** Writes to the bare socket, because no request exists. */
export function answerParseError(error: ParserError, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
  } else if (!refused.has(socket)) {
    refused.add(socket);
    refuseInOrder(classifyParseError(error), socket);
  }
}

/** Rejects CONNECT. Node has already detached from the socket and does not handle its errors. */
export function refuseConnect({ method = '' }: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => socket.destroy()).resume();
  socket.once('finish', () => socket.destroy());
  refuseInOrder(unknownMethodError(method), socket);
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
    response.once('close', () => {
      refuseInOrder(failure, socket);
    });
  } else if (response?.headersSent) {
    socket.destroy();
  } else {
    refuse(failure, socket);
  }
}

function refuse(failure: ServiceError, socket: Duplex): void {
  const { status, headers, body } = completeError(failure);
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`, ...lines];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

function classifyParseError({ code, rawPacket }: ParserError): ServiceError {
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
