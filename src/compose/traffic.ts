// The budget of work on records, by client.
import { type RunStepsOf, createRunStepsOf } from '../http/request-work.js';
import { createFindClient } from '../server/client-address.js';
import type { SharedDeps } from './shared-deps.js';

/** Charges the work of a request to the network of its client. */
export const makeRunStepsOf = ({ config, slicer }: SharedDeps): RunStepsOf =>
  createRunStepsOf(slicer, createFindClient(config.http.trustedProxies));
