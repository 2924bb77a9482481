// Runs the work of one request on records: at once when they are small, else in slices, until its client leaves.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { type Steps, type TimeSlicer, runToEnd } from '../time-slicer.js';

/**
 * Runs the steps of work on so many characters of records. Rejects with BAD_REQUEST, which nobody reads, when the client
 * has left.
 */
export type RunSteps = <T>(steps: Steps<T>, chars: number) => T | Promise<T>;

/** Makes the `RunSteps` of one request. */
export type RunStepsOf = (res: ServerResponse) => RunSteps;

/** Less than a millisecond of work. */
const SMALL_CHARS = 16 * 1024;

/** The work of a request is charged to the network of its client. */
export function createRunStepsOf(
  slicer: TimeSlicer,
  findClient: (req: IncomingMessage) => { network: string },
): RunStepsOf {
  return function runStepsOf(res) {
    let signal: AbortSignal | undefined;
    return function runSteps(steps, chars) {
      if (chars <= SMALL_CHARS) return runToEnd(steps);
      signal ??= signalOfLeaving(res);
      return slicer.run(steps, { client: findClient(res.req).network, signal });
    };
  };
}

/** Aborted when the client has left, and after the end. */
export function signalOfLeaving(res: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  const abort = (): void => {
    leaving.abort(new ServiceError('BAD_REQUEST', { detail: 'the client has left' }));
  };
  if (res.destroyed) abort();
  else res.once('close', abort);
  return leaving.signal;
}
