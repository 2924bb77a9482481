// Ends the work of a request when its client leaves, or when too many large records wait.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';

/** Refuses a large record while too many wait for a slice. @throws ServiceError OVERLOADED */
export function refuseLargeRecord(): never {
  const detail = 'too many large records at the same time';
  throw new ServiceError('OVERLOADED', { detail, retryAfterMs: 1000 });
}

/** The signal of each response, because a batch asks for it once for each of its records. */
const SIGNALS = new WeakMap<ServerResponse, AbortSignal>();

/** Returns a signal that aborts on disconnect, and after a complete response. */
export function signalOfLeaving(res: ServerResponse): AbortSignal {
  const known = SIGNALS.get(res);
  if (known !== undefined) return known;
  const leaving = new AbortController();
  SIGNALS.set(res, leaving.signal);
  const abortWork = (): void =>
    leaving.abort(new ServiceError('BAD_REQUEST', { detail: 'the client has left' }));
  if (res.destroyed) abortWork();
  else res.once('close', abortWork);
  return leaving.signal;
}

/**
 * Closes the connection of a long response once the client has closed its side: until a write fails, a client that has left
 * looks like a half-closed one, which waits for the end of its response.
 */
export function endWithClient({ socket }: IncomingMessage, res: ServerResponse): void {
  const close = (): unknown => res.destroy();
  if (socket.readableEnded) close();
  socket.once('end', close);
  res.once('close', () => socket.off('end', close));
}

/** Starts an endless response of server-sent events; returns false for HEAD, which is complete. */
export function startEvents(req: IncomingMessage, res: ServerResponse): boolean {
  res.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Stops nginx from buffering the stream.
  res.setHeader('X-Accel-Buffering', 'no');
  if (req.method === 'HEAD') {
    res.end();
    return false;
  }
  res.flushHeaders();
  endWithClient(req, res);
  return true;
}
