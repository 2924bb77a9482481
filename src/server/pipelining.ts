// Serialises pipelined requests per connection.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum waiting requests of one connection; above it the socket is not read. */
const MAX_WAITING_PER_CONNECTION = 16;

/** One packet may hold thousands of requests, and Node reads all of it: this bounds the sum over all connections. */
const MAX_WAITING = 20_000;

interface Queue {
  waiting: number;
}

/** Calls `handle` immediately, or when the responses before this one have been sent. */
type Serialize = (req: IncomingMessage, res: ServerResponse, handle: () => void) => void;

/**
 * Handles requests one at a time, because a GET after a PUT must see its result (RFC 9112 §9.3.2), and because one packet
 * could otherwise start thousands of requests at the same time.
 */
export function createSerializer(): Serialize {
  const queues = new WeakMap<Socket, Queue>();
  let total = 0;

  function queueOf(socket: Socket): Queue {
    const known = queues.get(socket);
    if (known !== undefined) return known;
    const queue = { waiting: 0 };
    queues.set(socket, queue);
    // Node also resumes a connection itself, for example when a request was read to its end.
    socket.on('resume', () => {
      if (queue.waiting >= MAX_WAITING_PER_CONNECTION) socket.pause();
    });
    socket.once('close', () => {
      total -= queue.waiting;
      queue.waiting = 0;
    });
    return queue;
  }

  function enqueue(socket: Socket, queue: Queue): void {
    queue.waiting++;
    total++;
    if (total > MAX_WAITING) socket.destroy();
    else if (queue.waiting === MAX_WAITING_PER_CONNECTION) socket.pause();
  }

  function dequeue(socket: Socket, queue: Queue): void {
    queue.waiting--;
    total--;
    if (queue.waiting === MAX_WAITING_PER_CONNECTION - 1) socket.resume();
  }

  return function serialize({ socket }, res, handle) {
    // The last response has been sent: no request after it is carried out (RFC 9112 §9.6).
    if (!socket.writable) return;
    // Node assigns the connection to the first response that is not finished.
    if (res.socket !== null) {
      handle();
      return;
    }
    const queue = queueOf(socket);
    enqueue(socket, queue);
    res.once('socket', () => {
      // Lets requests of other connections run in between.
      setImmediate(() => {
        if (socket.destroyed || socket.writableEnded) return;
        dequeue(socket, queue);
        handle();
      });
    });
  };
}
