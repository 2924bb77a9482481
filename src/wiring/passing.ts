// Makes what passes requests on: it has connections and bodies under way, so a reload leaves it alone.
import type { Agent } from 'node:http';
import { type Forward, createForwarder } from '../http/forwarder.js';
import { createGatedForward } from '../http/gated-forward.js';
import { createPassThrough } from '../http/pass-through.js';
import type { PipelineDeps } from '../http/pipeline.js';
import { type WithBody, createWithBody } from '../http/request-body.js';
import { type Agents, createAgents } from '../upstream/agent.js';
import type { Gate } from '../upstream/gate.js';
import { type ReverseLookup, createReverseLookup } from '../upstream/reverse-lookup.js';
import type { Parts } from './parts.js';

export interface Passing {
  forward: Forward;
  withBody: WithBody;
  passThrough: PipelineDeps['passThrough'];
  /** Where a reverse look-up service is configured. */
  reverse?: { passThrough: NonNullable<PipelineDeps['reverseLookup']>; lookup: ReverseLookup };
}

export function makePassing(parts: Parts, { agents, gate }: { agents: Agents; gate: Gate }): Passing {
  const forward = createGatedForward(makeForwarder(parts, agents.nodeAgent), gate);
  const withBody = makeWithBody(parts.config);
  const reverse = makeReverse(parts, withBody);
  return {
    forward,
    withBody,
    passThrough: createPassThrough({ withBody, forward }),
    ...(reverse && { reverse }),
  };
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
  // One body of the greatest size always has room.
  return createWithBody({
    maxBodyBytes: maxBodySize,
    roomBytes: Math.max(maxBodySize, bodiesMaxBytes),
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
    passThrough: createPassThrough({ withBody, forward }),
    lookup: createReverseLookup({ url, pseudonym, timeoutMs, maxBodyBytes, dispatcher }),
  };
}
