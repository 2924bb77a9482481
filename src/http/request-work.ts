// Processes the records of a request: small ones directly, large ones in time slices until the client disconnects.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { SMALL_CHARS } from '../handle/value.js';
import { type TimeSlicer, type Work, runToEnd } from '../time-slicer.js';

/**
 * Runs work on `chars` characters of records, which the request holds until it ends. `Infinity`: work that reads
 * its records itself, of any size.
 *
 * After the client disconnects, rejects with BAD_REQUEST, which is never sent.
 *
 * @throws ServiceError OVERLOADED
 */
export type RunSteps = <T>(work: Work<T>, chars: number) => T | Promise<T>;

/**
 * Creates the `RunSteps` for a request. Work on one record is run by one call: each call waits behind the client's other
 * records, so that several for a record would hold all of them at a time.
 */
export type RunStepsOf = (res: ServerResponse, network: string) => RunSteps;

/** Charges a request's processing time, and the records held meanwhile, to its client's network. */
export function createRunStepsOf(slicer: TimeSlicer, maxRecordBytes: number): RunStepsOf {
  const waiting = new WaitingChars(maxRecordBytes);
  return function runStepsOf(res, network) {
    return function runSteps(work, chars) {
      if (chars <= SMALL_CHARS) return runToEnd(work);
      const signal = signalOfLeaving(res);
      const isHolding = chars !== Infinity;
      if (!isHolding) return slicer.run(work, { client: network, signal });
      waiting.assertRoom(network, chars);
      const result = slicer.run(work, { client: network, signal, isHolding });
      if (!(result instanceof Promise)) return result;
      waiting.add(network, chars);
      return result.finally(() => waiting.add(network, -chars));
    };
  };
}

/** Maximum length of the records that wait for a slice, in records of the largest size. */
const MAX_WAITING_RECORDS = { ofNetwork: 16, total: 64 };

/** The length of the records that wait for a slice, in total and by client network. */
class WaitingChars {
  readonly #byNetwork = new Map<string, number>();
  #total = 0;

  constructor(private readonly maxRecordChars: number) {}

  /** Always admits a network's only record. @throws ServiceError OVERLOADED */
  assertRoom(network: string, chars: number): void {
    const ofNetwork = MAX_WAITING_RECORDS.ofNetwork * this.maxRecordChars;
    const total = MAX_WAITING_RECORDS.total * this.maxRecordChars;
    const before = this.#byNetwork.get(network) ?? 0;
    if (before === 0 ? this.#total <= total : before + chars <= ofNetwork && this.#total + chars <= total)
      return;
    throw new ServiceError('OVERLOADED', {
      detail: 'too many large records at the same time',
      retryAfterMs: 1000,
    });
  }

  add(network: string, chars: number): void {
    const now = (this.#byNetwork.get(network) ?? 0) + chars;
    this.#total += chars;
    if (now === 0) this.#byNetwork.delete(network);
    else this.#byNetwork.set(network, now);
  }
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
 * Starts an endless response of server-sent events; returns false for HEAD, which is complete. Its connection closes once
 * the client has closed its side: until a write fails, a client that has left looks like a half-closed one, which waits
 * for the end of its response.
 */
export function startEvents({ method, socket }: IncomingMessage, res: ServerResponse): boolean {
  res.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Stops nginx from buffering the stream.
  res.setHeader('X-Accel-Buffering', 'no');
  if (method === 'HEAD') {
    res.end();
    return false;
  }
  res.flushHeaders();
  const close = (): unknown => res.destroy();
  if (socket.readableEnded) close();
  else socket.once('end', close);
  return true;
}
