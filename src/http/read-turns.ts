// Reads long bodies in turns, so that many senders do not delay new clients.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Connections whose next bytes wait for their turn, over all listeners. */
const waiting: (() => void)[] = [];

/** Reads one connection, 64 or 128 KiB, in a turn of the event loop. */
function readNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(readNext);
}

/**
 * Returns a function to call with each piece of a body, or else of the connection; further bytes are read when it is
 * the connection's turn. It returns false while the connection waits: a packet may hold thousands of pieces.
 *
 * In one turn of the event loop, Node accepts one connection, and libuv reads up to 2 MiB of each sender: a new client
 * behind 300 others would wait for minutes.
 */
export function createReadTurns(socket: Socket, body?: IncomingMessage): () => boolean {
  let isWaiting = false;
  const isComplete = (): boolean => body?.complete === true;
  const read = (): void => {
    isWaiting = false;
    // After its body, a connection may be paused because of its next requests.
    if (!isComplete()) socket.resume();
  };
  // Node also resumes a connection itself, when a body has room for more.
  const onResume = (): void => {
    if (isWaiting && !isComplete()) socket.pause();
  };
  socket.on('resume', onResume);
  body?.once('close', () => socket.off('resume', onResume));
  return function awaitTurn() {
    if (isWaiting || isComplete()) return false;
    isWaiting = true;
    socket.pause();
    if (waiting.push(read) === 1) setImmediate(readNext);
    return true;
  };
}
