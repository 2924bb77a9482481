// Counts unread long responses towards one budget; above it, the slowest readers are disconnected.
import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Context } from '../context.js';
import type { MemoryBudget } from '../http/request-body.js';
import { networkOf } from '../http/client-address.js';
import { createDropReport } from './connections.js';

/**
 * Minimum counted length (bytes): the kernel buffers most of a shorter response, and
 * a connection has one response at a time.
 */
const MIN_BYTES = 64 * 1024;

/**
 * Returns how many bytes of the last write the kernel has not yet accepted. Node's socket timeout reads the
 * same field.
 */
export const leftOfWrite = (socket: Socket): number | undefined =>
  (socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize;

/**
 * Counts a response that was completely written to its socket. `ended` emits
 * `close` when it is sent or aborted.
 */
type CountUnsent = (socket: Socket, ended: EventEmitter) => void;

export function createUnsentCount(unsent: MemoryBudget, context: Context, listener: string): CountUnsent {
  const holdFor = createHolding(unsent, context, listener);
  return function countUnsent(socket, ended) {
    // The response stays in memory until its last byte is sent.
    const bytes = socket.writableLength;
    if (bytes > MIN_BYTES) holdFor(socket, ended)(bytes);
  };
}

/** Replaces the number of bytes that a streamed response holds now, sent or not. */
type HoldUnsent = (bytes: number) => void;

/** Counts a response while it is streamed, with everything held for it; ends when the response does. */
export type HoldFor = (res: ServerResponse) => HoldUnsent;

export function createHoldFor(unsent: MemoryBudget, context: Context): HoldFor {
  const holdFor = createHolding(unsent, context, 'http');
  return (res) => (res.socket === null ? () => undefined : holdFor(res.socket, res));
}

function createHolding(unsent: MemoryBudget, context: Context, listener: string) {
  const reportDrop = createDropReport(context, listener, 'unread answers, closing their connections');
  return function holdFor(socket: Socket, ended: EventEmitter): HoldUnsent {
    let counted = 0;
    let isOver = false;
    let before = progressOf(socket);
    const releaseHeld = (): void => {
      isOver = true;
      ended.off('close', releaseHeld);
      unsent.holders.delete(holder);
      unsent.free(counted);
    };
    const holder = {
      hasMoved(): boolean {
        const now = progressOf(socket);
        const hasMoved = now.left !== before.left || now.written !== before.written;
        before = now;
        return hasMoved;
      },
      giveWay(): void {
        releaseHeld();
        reportDrop('unread', networkOf(socket.remoteAddress ?? ''));
        socket.destroy();
      },
    };
    ended.once('close', releaseHeld);
    return function hold(bytes) {
      if (isOver) return;
      unsent.holders.delete(holder);
      unsent.free(counted);
      counted = bytes > MIN_BYTES ? bytes : 0;
      if (counted === 0) return;
      // The holder is added last, so that other clients are disconnected first: this client had no time to read.
      unsent.add(counted);
      unsent.holders.add(holder);
    };
  };
}

/** Both figures are unchanged while the client reads nothing. */
const progressOf = (socket: Socket) => ({ left: leftOfWrite(socket), written: socket.bytesWritten });

/** Counts each response when `end` has written everything, of which `prefinish` tells (test/unit/node-internals). */
export function countUnsentResponses(countUnsent: CountUnsent): (res: ServerResponse) => void {
  function onWritten(this: ServerResponse): void {
    if (this.socket !== null) countUnsent(this.socket, this);
  }
  return (res) => res.on('prefinish', onWritten);
}
