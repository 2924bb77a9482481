// Runs the work of a request on records: small ones without interruption, others in slices until the client disconnects.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { type Steps, type TimeSlicer, runToEnd } from '../time-slicer.js';

/**
 * Runs the steps of work on `chars` characters of records. Rejects with BAD_REQUEST, which nobody reads, when the client
 * has disconnected.
 */
export type RunSteps = <T>(steps: Steps<T>, chars: number) => T | Promise<T>;

/** Creates the `RunSteps` of a request. */
export type RunStepsOf = (res: ServerResponse) => RunSteps;

/** Records up to this size take less than a millisecond. */
const SMALL_CHARS = 16 * 1024;

/** Charges the work of a request to the network of its client. */
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

/** Aborted when the client disconnects, and when the response is complete. */
export function signalOfLeaving(res: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  const abort = (): void => {
    leaving.abort(new ServiceError('BAD_REQUEST', { detail: 'the client has left' }));
  };
  if (res.destroyed) abort();
  else res.once('close', abort);
  return leaving.signal;
}
