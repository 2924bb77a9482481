// Discards the rest of a request after its response, up to a bound, so that the client can read the response.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { createReadTurns } from '../http/read-turns.js';

/** Minimum of the bound (bytes). */
const MIN_BYTES = 4 * 2 ** 20;

/** Bound in bodies of `http.maxBodySize`: a client that reads no response before its body is sent gets its 413. */
const MAX_BODIES = 4;

/** Reads the rest of a body, or else of the connection, and destroys the socket when it is longer than the bound. */
export function discardRest(socket: Socket, body?: IncomingMessage, maxBytes = MIN_BYTES): void {
  const endsAt = socket.bytesRead + maxBytes;
  const awaitTurn = createReadTurns(socket, body);
  const onData = (): void => {
    if (awaitTurn() && socket.bytesRead > endsAt) socket.destroy();
  };
  (body ?? socket).on('data', onData).resume();
}

/** Bounds the rest of a body from the end of its response. Call it before the request is handled. */
export function boundUnreadBody(req: IncomingMessage, res: ServerResponse, maxBodyBytes = 0): void {
  const maxBytes = Math.max(MIN_BYTES, MAX_BODIES * maxBodyBytes);
  // The client learns with the response that its body is not read to the end.
  if (Number(req.headers['content-length']) > maxBytes) res.shouldKeepAlive = false;
  res.once('prefinish', () => {
    if (req.complete) return;
    lingerOn(req);
    discardRest(req.socket, req, maxBytes);
  });
}

/**
 * Half-closes the connection after its last response, and closes it after the body. Node closes it immediately; with
 * unread bytes the kernel then resets it, and the client may lose the response (RFC 9112 §9.6).
 */
function lingerOn(body: IncomingMessage): void {
  const { socket } = body;
  socket.destroySoon = (): void => {
    if (body.complete) Socket.prototype.destroySoon.call(socket);
    else socket.end();
  };
  body.once('end', () => {
    if (socket.writableEnded) socket.destroySoon();
  });
}
