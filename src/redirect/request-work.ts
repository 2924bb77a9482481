// Runs the work of one request on records: at once when they are small, else in slices, until its client leaves.
import type { ServerResponse } from 'node:http';
import { contextOf } from '../http/context.js';
import { type Steps, type TimeSlicer, runToEnd } from '../time-slicer.js';

/** `chars`: of the records that the steps read. */
export type RunSteps = <T>(steps: Steps<T>, chars: number) => T | Promise<T>;

/** What such a client still waits for is rejected with it. */
export const CLIENT_LEFT = new Error('the client has left');

/** Less than a millisecond. */
const SMALL_CHARS = 16 * 1024;

export function createRunSteps(res: ServerResponse, slicer: TimeSlicer): RunSteps {
  let leaving: AbortController | undefined;
  return function run(steps, chars) {
    if (chars <= SMALL_CHARS) return runToEnd(steps);
    leaving ??= watchLeaving(res);
    return slicer.run(steps, { client: contextOf(res).caller?.client ?? 'unknown', signal: leaving.signal });
  };
}

function watchLeaving(res: ServerResponse): AbortController {
  const leaving = new AbortController();
  if (res.destroyed) leaving.abort(CLIENT_LEFT);
  res.once('close', () => {
    leaving.abort(CLIENT_LEFT);
  });
  return leaving;
}
