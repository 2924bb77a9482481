// Counts unread long responses towards one budget; above it, the slowest readers are disconnected.
import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from '../context.js';
import type { MemoryBudget } from '../http/request-body.js';
import { networkOf } from '../http/client-address.js';
import { createDropReport } from './connections.js';

/** Minimum counted length (bytes): the kernel buffers most of a shorter response, one at a time per connection. */
const MIN_BYTES = 64 * 1024;

/** Returns the bytes of the last write not yet accepted by the kernel; Node's socket timeout reads the same field. */
export const leftOfWrite = (socket: Socket): number | undefined =>
  (socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize;

/** Counts the unsent responses of a listener. */
export class UnsentCount {
  readonly #reportDrop: ReturnType<typeof createDropReport>;

  constructor(
    private readonly budget: MemoryBudget,
    context: Context,
    listener: string,
  ) {
    this.#reportDrop = createDropReport(context, listener, 'unread answers, closing their connections');
  }

  /** Counts a response that was completely written to its socket. `ended` emits `close` when it is sent or aborted. */
  countWritten(socket: Socket, ended: EventEmitter): void {
    // The response stays in memory until its last byte is sent.
    const bytes = socket.writableLength;
    if (bytes > MIN_BYTES) this.#start(socket, ended)(bytes);
  }

  /** Counts a response while it is streamed. The result replaces the number of bytes held for it, sent or not. */
  countStream(res: ServerResponse): (bytes: number) => void {
    return res.socket === null ? () => undefined : this.#start(res.socket, res);
  }

  #start(socket: Socket, ended: EventEmitter): (bytes: number) => void {
    let counted = 0;
    let isOver = false;
    let before = progressOf(socket);
    const releaseHeld = (): void => {
      isOver = true;
      ended.off('close', releaseHeld);
      this.budget.holders.delete(holder);
      this.budget.free(counted);
    };
    const holder = {
      hasMoved: (): boolean => {
        const now = progressOf(socket);
        const hasMoved = now.left !== before.left || now.written !== before.written;
        before = now;
        return hasMoved;
      },
      giveWay: (): void => {
        releaseHeld();
        this.#reportDrop('unread', networkOf(socket.remoteAddress ?? ''));
        socket.destroy();
      },
    };
    ended.once('close', releaseHeld);
    return (bytes) => {
      if (isOver) return;
      this.budget.holders.delete(holder);
      this.budget.free(counted);
      counted = bytes > MIN_BYTES ? bytes : 0;
      if (counted === 0) return;
      // The holder is added last, so that other clients are disconnected first: this client had no time to read.
      this.budget.add(counted);
      this.budget.holders.add(holder);
    };
  }
}

/** Both figures are unchanged while the client reads nothing. */
const progressOf = (socket: Socket) => ({ left: leftOfWrite(socket), written: socket.bytesWritten });
