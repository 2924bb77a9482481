// Forwards requests to the responsible Handle server. A reload preserves the forwarder.
import type { Config } from '../config/schema.js';
import { type RequestContext, contextOf } from '../http/context.js';
import { type MemoryBudget, type WithBody, createWithBody } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import { type Place, restOf } from '../http/route-table.js';
import { isList, rawHandleOf, readHandle } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import { assertForwards } from '../upstream/source.js';
import type { HandleServer } from '../upstream/contract.js';
import { type Upstreams, assertFound } from '../upstream/upstreams.js';
import { type Forward, type ForwardingHop, createForwarder, createLimitedForward } from './forward.js';
import { type PassThrough, createPassThrough } from './pass-through.js';

export interface Forwarding {
  withBody: WithBody;
  forward: Forward;
  passThrough: PassThrough;
}

type ForwardingSettings = Pick<Config, 'http' | 'upstream'>;

interface ForwardingParts extends ForwardingHop {
  upstreams: Pick<Upstreams, 'main' | 'findServers'>;
  resolver: Pick<Resolver<unknown>, 'learn' | 'refOf'>;
  runStepsOf: RunStepsOf;
  bodies: MemoryBudget;
}

export function createForwarding(settings: ForwardingSettings, parts: ForwardingParts): Forwarding {
  const { maxBodyBytes } = settings.http;
  const { maxRecordBytes } = settings.upstream;
  const { resolver, runStepsOf } = parts;
  const withBody = createWithBody({ maxBodyBytes, budget: parts.bodies });
  const forward = routeForwards(parts);
  return {
    withBody,
    forward,
    passThrough: createPassThrough({ withBody, forward, resolver, maxRecordBytes, runStepsOf }),
  };
}

/** Returns a forwarder that selects the responsible server. */
function routeForwards(parts: ForwardingParts): Forward {
  const forwards = new Map<HandleServer, Forward>();
  const forwardTo = (server: HandleServer): Forward => {
    const forward =
      forwards.get(server) ?? createLimitedForward(createForwarder(server, parts), server.limiter);
    forwards.set(server, forward);
    return forward;
  };
  return (req, res, content) => {
    const server = content.origin?.server ?? serverFor(contextOf(res), parts);
    assertForwards(server);
    return forwardTo(assertFound(server))(req, res, content);
  };
}

/**
 * Returns the server of a request: the server of its handle, of the handle that it verifies or of the prefix
 * that it lists, otherwise the main server.
 */
function serverFor(
  context: RequestContext,
  { upstreams: { main, findServers }, resolver: { refOf } }: Pick<ForwardingParts, 'upstreams' | 'resolver'>,
): HandleServer | undefined {
  const { handle, target, parameters } = context;
  if (handle !== undefined) return findServers(handle)[0];
  const verified = handleToVerify(context);
  if (verified !== undefined) return findServers(refOf(verified))[0];
  const isListed = isList(rawHandleOf(target.path) ?? '-', parameters);
  if (isListed) return findServers(refOf(`${parameters.get('prefix') ?? ''}/`))[0];
  return main;
}

/** Extracts the handle from a verification request, whose path ends in a key such as `300:21.T1/USER`. */
function handleToVerify(place: Place): string | undefined {
  const rest = restOf(place);
  if (rest === '' || place.match?.routes[0]?.id !== 'verify') return undefined;
  return readHandle(rest).replace(/^\d+:/, '');
}
