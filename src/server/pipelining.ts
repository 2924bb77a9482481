// Serialises pipelined requests per connection.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum queued requests per connection; at this number the socket is paused. */
const MAX_WAITING_PER_CONNECTION = 16;

/** Maximum queued requests over all connections: Node parses a whole packet, which may contain thousands. */
const MAX_WAITING = 20_000;

interface Queue {
  waiting: number;
}

/** Calls `handle` immediately, or after all earlier responses have been sent. */
type Serialize = (req: IncomingMessage, res: ServerResponse, handle: () => void) => void;

/**
 * Serialises the requests of a connection: a GET after a PUT must see its result (RFC 9112 §9.3.2), and one
 * packet could otherwise start thousands of concurrent requests.
 */
export function createSerializer(): Serialize {
  const queues = new WeakMap<Socket, Queue>();
  let total = 0;

  function queueOf(socket: Socket): Queue {
    const known = queues.get(socket);
    if (known !== undefined) return known;
    const queue = { waiting: 0 };
    queues.set(socket, queue);
    // Node also resumes a connection itself, for example after reading a request to its end.
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
    // No request is handled after the final response of a connection (RFC 9112 §9.6).
    if (!socket.writable) return;
    // Node assigns the socket to the first unfinished response.
    if (res.socket !== null) {
      handle();
      return;
    }
    const queue = queueOf(socket);
    enqueue(socket, queue);
    res.once('socket', () => {
      // Yields to requests on other connections.
      setImmediate(() => {
        if (socket.destroyed || socket.writableEnded) return;
        dequeue(socket, queue);
        handle();
      });
    });
  };
}
