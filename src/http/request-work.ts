// Processes the records of a request: small ones directly, large ones in time
// slices until the client disconnects.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { type Steps, type TimeSlicer, runToEnd } from '../time-slicer.js';

/**
 * Runs steps that process `chars` characters of records. After the client disconnects, rejects with
 * BAD_REQUEST, which is never sent.
 */
export type RunSteps = <T>(steps: Steps<T>, chars: number) => T | Promise<T>;

/** Creates the `RunSteps` for a request. */
export type RunStepsOf = (res: ServerResponse) => RunSteps;

/** Maximum length to process without slicing, which takes less than a millisecond. */
const SMALL_CHARS = 16 * 1024;

/** Charges a request's processing time to its client's network. */
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

/** Returns a signal that aborts on disconnect, and after a complete response. */
export function signalOfLeaving(res: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  const abort = (): void => {
    leaving.abort(new ServiceError('BAD_REQUEST', { detail: 'the client has left' }));
  };
  if (res.destroyed) abort();
  else res.once('close', abort);
  return leaving.signal;
}
