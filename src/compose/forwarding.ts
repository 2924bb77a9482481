// Creates the forwarding of requests. It has connections and bodies in use, so a reload keeps it.
import type { Agent } from 'node:http';
import { type Forward, createForwarder, createLimitedForward } from '../record/forward.js';
import { createPassThrough } from '../record/pass-through.js';
import type { PipelineDeps } from '../record/pipeline.js';
import { type WithBody, createWithBody } from '../http/request-body.js';
import type { ConcurrencyLimiter } from '../upstream/concurrency-limiter.js';
import { type Connections, createConnections } from '../upstream/connections.js';
import { type RecordClient, createRecordClient } from '../upstream/record-client.js';
import { type ReverseLookup, createReverseLookup } from '../upstream/reverse-lookup.js';
import { warnOfIgnoredLogins } from './ignored-login.js';
import type { SharedDeps } from './shared-deps.js';

export interface Forwarding {
  /** For requests with the credentials of one caller. */
  records: RecordClient;
  forward: Forward;
  withBody: WithBody;
  passThrough: PipelineDeps['passThrough'];
  /** Undefined over https. */
  onIgnoredLogin: (() => void) | undefined;
  /** Where a reverse look-up service is configured. */
  reverse?: {
    passThrough: NonNullable<PipelineDeps['reverseLookup']>;
    lookup: ReverseLookup;
    close: Connections['close'];
  };
}

interface UpstreamAccess {
  connections: Connections;
  limiter: ConcurrencyLimiter;
}

export function makeForwarding(shared: SharedDeps, access: UpstreamAccess): Forwarding {
  const forward = createLimitedForward(makeForwarder(shared, access.connections.writeAgent), access.limiter);
  const withBody = makeWithBody(shared.config);
  const reverse = makeReverse(shared, withBody);
  const maxRecordBytes = shared.config.upstream.maxBodySize;
  const onIgnoredLogin = warnOfIgnoredLogins(shared);
  return {
    records: makeRecords(shared, { ...access, onIgnoredLogin }),
    onIgnoredLogin,
    forward,
    withBody,
    passThrough: createPassThrough({ withBody, forward, maxRecordBytes }),
    ...(reverse && { reverse }),
  };
}

function makeRecords(
  { config, upstreamUrl: url, pseudonym }: SharedDeps,
  {
    connections: { dispatcher },
    limiter,
    onIgnoredLogin,
  }: UpstreamAccess & Pick<Forwarding, 'onIgnoredLogin'>,
): RecordClient {
  const { timeout, writeTimeout, maxBodySize, caseSensitive } = config.upstream;
  const limits = { timeoutMs: timeout, writeTimeoutMs: writeTimeout, maxBodyBytes: maxBodySize };
  return createRecordClient({
    url,
    pseudonym,
    caseSensitive,
    limiter,
    dispatcher,
    onIgnoredLogin,
    ...limits,
  });
}

function makeForwarder({ config, upstreamUrl, pseudonym }: SharedDeps, agent: Agent): Forward {
  return createForwarder({
    upstreamUrl,
    agent,
    timeoutMs: config.upstream.writeTimeout,
    pseudonym,
  });
}

function makeWithBody({ http }: SharedDeps['config']): WithBody {
  const { maxBodySize, bodiesMaxBytes } = http;
  // One body of the maximum size is always accepted.
  return createWithBody({
    maxBodyBytes: maxBodySize,
    maxTotalBytes: Math.max(maxBodySize, bodiesMaxBytes),
  });
}

function makeReverse(shared: SharedDeps, withBody: WithBody): Forwarding['reverse'] {
  const { config, pseudonym } = shared;
  const { url } = config.reverseLookup;
  if (url === undefined) return undefined;
  const { timeout: timeoutMs, maxBodySize: maxBodyBytes, connections } = config.upstream;
  const { writeAgent, dispatcher, close } = createConnections({ url, connections }, shared.createDispatcher);
  const forward = makeForwarder({ ...shared, upstreamUrl: url }, writeAgent);
  return {
    passThrough: createPassThrough({ withBody, forward, maxRecordBytes: maxBodyBytes }),
    lookup: createReverseLookup({ url, pseudonym, timeoutMs, maxBodyBytes, dispatcher }),
    close,
  };
}
