// Makes what passes requests on: it has connections and bodies under way, so a reload leaves it alone.
import type { Agent } from 'node:http';
import { type Forward, createForwarder, createLimitedForward } from '../record/forward.js';
import { createPassThrough } from '../record/pass-through.js';
import type { PipelineDeps } from '../record/pipeline.js';
import { type WithBody, createWithBody } from '../http/request-body.js';
import { type Agents, createAgents } from '../upstream/agent.js';
import type { Gate } from '../upstream/concurrency-limiter.js';
import { type RecordClient, createRecordClient } from '../upstream/record-client.js';
import { type ReverseLookup, createReverseLookup } from '../upstream/reverse-lookup.js';
import type { Parts } from './parts.js';

export interface Passing {
  /** For requests with the credentials of one caller. */
  records: RecordClient;
  forward: Forward;
  withBody: WithBody;
  passThrough: PipelineDeps['passThrough'];
  /** Where a reverse look-up service is configured. */
  reverse?: { passThrough: NonNullable<PipelineDeps['reverseLookup']>; lookup: ReverseLookup };
}

export function makePassing(parts: Parts, { agents, gate }: { agents: Agents; gate: Gate }): Passing {
  const forward = createLimitedForward(makeForwarder(parts, agents.nodeAgent), gate);
  const withBody = makeWithBody(parts.config);
  const reverse = makeReverse(parts, withBody);
  const maxRecordBytes = parts.config.upstream.maxBodySize;
  return {
    records: makeRecords(parts, { agents, gate }),
    forward,
    withBody,
    passThrough: createPassThrough({ withBody, forward, maxRecordBytes }),
    ...(reverse && { reverse }),
  };
}

function makeRecords(
  { config, upstreamUrl: url, pseudonym }: Parts,
  { agents, gate }: { agents: Agents; gate: Gate },
): RecordClient {
  const { timeout, writeTimeout, maxBodySize, caseSensitive } = config.upstream;
  const limits = { timeoutMs: timeout, writeTimeoutMs: writeTimeout, maxBodyBytes: maxBodySize };
  return createRecordClient({ url, pseudonym, caseSensitive, gate, ...limits, ...agents });
}

function makeForwarder({ config, upstreamUrl, pseudonym }: Parts, agent: Agent): Forward {
  return createForwarder({
    upstreamUrl,
    agent,
    timeoutMs: config.upstream.writeTimeout,
    pseudonym,
  });
}

function makeWithBody({ http }: Parts['config']): WithBody {
  const { maxBodySize, bodiesMaxBytes } = http;
  // One body of the maximum size is always accepted.
  return createWithBody({
    maxBodyBytes: maxBodySize,
    maxTotalBytes: Math.max(maxBodySize, bodiesMaxBytes),
  });
}

function makeReverse(parts: Parts, withBody: WithBody): Passing['reverse'] {
  const { config, pseudonym } = parts;
  const { url } = config.reverseLookup;
  if (url === null) return undefined;
  const { timeout: timeoutMs, maxBodySize: maxBodyBytes, connections } = config.upstream;
  const { nodeAgent, dispatcher } = createAgents({ url, connections });
  const forward = makeForwarder({ ...parts, upstreamUrl: url }, nodeAgent);
  return {
    passThrough: createPassThrough({ withBody, forward, maxRecordBytes: maxBodyBytes }),
    lookup: createReverseLookup({ url, pseudonym, timeoutMs, maxBodyBytes, dispatcher }),
  };
}
