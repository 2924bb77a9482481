// Creates the forwarding of requests. It has connections and bodies in use, so a reload keeps it.
import { createForwarder } from '../record/forward.js';
import type { Learn } from '../record/learning.js';
import { type PassThrough, createPassThrough } from '../record/pass-through.js';
import { createWithBody, type WithBody } from '../http/request-body.js';
import { type Connections, createConnections } from '../upstream/connections.js';
import { type ReverseLookup, createReverseLookup } from '../upstream/reverse-lookup.js';
import type { SharedDeps } from './shared-deps.js';
import { makeRunStepsOf } from './traffic.js';
import type { Upstreams } from './upstreams.js';

export interface Forwarding {
  withBody: WithBody;
  passThrough: PassThrough;
  /** Where a reverse look-up service is configured. */
  reverse?: {
    passThrough: PassThrough;
    lookup: ReverseLookup;
    close: Connections['close'];
  };
}

export function makeForwarding(
  shared: SharedDeps,
  { forward, learn }: Pick<Upstreams, 'forward'> & { learn: Learn },
): Forwarding {
  const withBody = createWithBody({
    maxBodyBytes: shared.config.http.maxBodyBytes,
    budget: shared.bodies,
  });
  const reverse = makeReverse(shared, withBody);
  const maxRecordBytes = shared.config.upstream.maxRecordBytes;
  const runStepsOf = makeRunStepsOf(shared);
  return {
    withBody,
    passThrough: createPassThrough({ withBody, forward, learn, maxRecordBytes, runStepsOf }),
    ...(reverse && { reverse }),
  };
}

function makeReverse(shared: SharedDeps, withBody: WithBody): Forwarding['reverse'] {
  const { config, pseudonym } = shared;
  const { url } = config.reverseLookup;
  if (url === undefined) return undefined;
  const { timeoutMs, maxBodyBytes, connections } = config.upstream;
  const { writeAgent, dispatcher, close } = createConnections({ url, connections }, shared.createDispatcher);
  const forward = createForwarder({
    upstreamUrl: url,
    agent: writeAgent,
    timeoutMs: config.upstream.writeTimeoutMs,
    pseudonym,
    withCredentials: true,
  });
  return {
    passThrough: createPassThrough({
      withBody,
      forward,
      maxRecordBytes: maxBodyBytes,
      runStepsOf: makeRunStepsOf(shared),
    }),
    lookup: createReverseLookup({ url, pseudonym, timeoutMs, maxBodyBytes, dispatcher }),
    close,
  };
}
