// Requests that come without waiting for the answers before them (pipelining): each is begun when it is its turn.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** So many of a connection wait here; what else its client sends stays in the network. */
const MOST_WAITING = 16;

/** One packet may hold thousands, and Node reads all of it. Of all connections together no more than these wait. */
const MOST_WAITING_AT_ALL = 20_000;

interface Line {
  waiting: number;
}

/** Begins a request at once, or when the answers before it have been sent. */
export type InTurn = (req: IncomingMessage, res: ServerResponse, begin: () => void) => void;

/**
 * One after the other, because a GET behind a PUT shall see what was put (RFC 9112 §9.3.2), and because one
 * client could otherwise have as much done at the same time as fits into a packet.
 */
export function createInTurn(mostAtAll = MOST_WAITING_AT_ALL): InTurn {
  const lines = new WeakMap<Socket, Line>();
  let atAll = 0;

  function lineOf(socket: Socket): Line {
    const known = lines.get(socket);
    if (known !== undefined) return known;
    const line = { waiting: 0 };
    lines.set(socket, line);
    // Node lets a connection go on for reasons of its own, such as a request that was read to its end.
    socket.on('resume', () => {
      if (line.waiting >= MOST_WAITING) socket.pause();
    });
    socket.once('close', () => {
      atAll -= line.waiting;
      line.waiting = 0;
    });
    return line;
  }

  function wait(socket: Socket, line: Line): void {
    line.waiting++;
    atAll++;
    if (atAll > mostAtAll) socket.destroy();
    else if (line.waiting === MOST_WAITING) socket.pause();
  }

  function goOn(socket: Socket, line: Line): void {
    line.waiting--;
    atAll--;
    if (line.waiting === MOST_WAITING - 1) socket.resume();
  }

  return function inTurn({ socket }, res, begin) {
    // The last answer has been sent: no request behind it is carried out (RFC 9112 §9.6).
    if (!socket.writable) return;
    // A response has the connection when it is the first of it.
    if (res.socket !== null) {
      begin();
      return;
    }
    const line = lineOf(socket);
    wait(socket, line);
    res.once('socket', () => {
      // Other connections come in between.
      setImmediate(() => {
        if (socket.destroyed || socket.writableEnded) return;
        goOn(socket, line);
        begin();
      });
    });
  };
}
