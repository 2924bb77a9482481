// The public listener: the steps of a request before its handler, and the handlers and routes of all interfaces.
import type { RequestListener } from 'node:http';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { type Handler, contextOf, createAcceptRequestId, createOpenContext } from '../http/context.js';
import {
  type Listening,
  type RenderError,
  createReportUnexpected,
  createSendError,
  guard,
  renderRecordError,
} from '../http/error-reply.js';
import { createSendPrepared } from '../http/prepared-responses.js';
import { createSendRaw } from '../http/raw-response.js';
import { createBegin, createRequestCheck } from '../http/request-steps.js';
import { type WithBody, createWithBody } from '../http/request-body.js';
import type { Route } from '../http/route-table.js';
import { type Interfaces, answerUnrouted, createRouter } from '../http/router.js';
import { type Owner, ownerOf } from '../http/target.js';
import { createForwardRead, createReadRecord } from '../record/read.js';
import { type Forward, createForward } from '../record/forward.js';
import { createListHandles } from '../record/list.js';
import { endpointRoutes, recordRoutes } from '../record/routes.js';
import { createWriteRoute } from '../record/write.js';
import { createRedirect, redirectRoutes } from '../redirect/redirect.js';
import { createV2, v2Routes } from '../v2/answer.js';
import { renderV2Problem } from '../v2/call.js';
import { createUnclaimedNames, type UnclaimedNames } from '../v2/unclaimed-names.js';
import { createSharedLock, type HandleLock } from '../write/lock.js';
import { createCarryOut } from '../write/write.js';
import { type Admission, createAdmission } from './admission.js';
import type { CreateHandlers, Plugin, PublicHandlers } from '../plugin.js';
import type { Host } from '../host.js';

/** Creates the public listener; after a reload, requests in flight finish with the previous settings. */
export function createPublicListener(
  host: Host,
  plugins: readonly Plugin[],
  handlers: readonly CreateHandlers[],
): RequestListener {
  const { settings, cache, clock } = host;
  const servers = upstreamServers(settings.current);
  const withBody = createWithBody(host.bodies, settings.current.http.maxBodyBytes);
  const kept: KeptParts = {
    withBody,
    forward: createForward(host, withBody),
    plugins,
    handlers,
    lock: createSharedLock(settings.current, servers, cache),
    unclaimed: createUnclaimedNames(clock.now, cache.commands),
  };
  const current = createListener(settings.current, host, kept);
  settings.onReload(() => Object.assign(current, createListener(settings.current, host, kept)));
  host.hooks.admitMessage.push((address, handle) => current.admitMessage(address, handle));
  const guarded = guard(current, createReportUnexpected(host));
  return host.hooks.spans.reduce((inner, { wrap }) => wrap(inner), guarded);
}

/** Creates the parts that a reload replaces. */
function createListener(
  config: Config,
  host: Host,
  kept: KeptParts,
): Listening & { admitMessage: Admission['admitMessage'] } {
  const { clock, findClient } = host;
  const admission = createAdmission(host.hooks, host.isTrustedProxy);
  const { judgeHits, admit, admitMessage } = admission;
  const check = createRequestCheck(config.http.maxRequestLineBytes, admission.refusalOf);
  const acceptRequestId = createAcceptRequestId(host.isTrustedProxy);
  const sendRaw = createSendRaw(clock.now);
  const routes = publicRoutes(
    { v2: config.v2.enabled, redirect: config.redirect.enabled },
    kept.plugins.filter((plugin) => plugin.isEnabled(config)).flatMap(({ routes: own = [] }) => own),
  );
  const sendPrepared = createSendPrepared(config, host, check, sendRaw);
  const interfaces = createInterfaces(config, host, { ...kept, ...admission, routes });
  const listener = createRouter(routes, interfaces, {
    sendPrepared,
    open: createOpenContext(acceptRequestId, findClient, sendRaw, host.slicer),
    judgeHits,
    begin: createBegin(host, check),
    admit,
  });
  return { listener, admitMessage };
}

/** The parts that a reload preserves. */
interface KeptParts {
  withBody: WithBody;
  forward: Forward;
  plugins: readonly Plugin[];
  handlers: readonly CreateHandlers[];
  lock: HandleLock;
  /** Minted names whose response was lost. */
  unclaimed: UnclaimedNames;
}

interface InterfaceParts extends KeptParts, Admission {
  routes: readonly Route[];
}

function createInterfaces(config: Config, host: Host, parts: InterfaceParts): Interfaces {
  const carryOut = createCarryOut(config.deletion, parts.lock, host);
  const forwardRead = createForwardRead(host, parts.forward);
  const v2 = config.v2.enabled ? createV2(config, host, { ...parts, carryOut }) : undefined;
  const redirect = config.redirect.enabled
    ? createRedirect(config, host, parts.admit, parts.refusalOfHandle)
    : undefined;
  const ofPlugins = parts.handlers.map((create) => create({ ...parts, settings: config }));
  const renderers: { [owner in Owner]?: RenderError | undefined } = {
    v2: v2 && renderV2Problem,
    redirect: redirect?.renderError,
  };
  return {
    handlers: {
      ...(Object.assign({}, ...ofPlugins) as PublicHandlers),
      ...redirect?.handlers,
      read: createReadRecord(config, host, parts.admit, forwardRead),
      forwardRead,
      list: createListHandles(config, host, parts.forward),
      forward: parts.forward,
      write: createWriteRoute(host, parts.withBody, carryOut),
      v2,
    },
    otherwise: (req, res, context) => {
      const isV2 = ownerOf(context.target.path) === 'v2';
      const handler: Handler = (isV2 && v2) || answerUnrouted;
      return handler(req, res, context);
    },
    sendError: createSendError(createReportUnexpected(host), (failure, call) =>
      (renderers[ownerOf(contextOf(call.res).target.path)] ?? renderRecordError)(failure, call),
    ),
  };
}

export const publicRoutes = (
  has: Readonly<Record<'v2' | 'redirect', boolean>>,
  ofPlugins: readonly Route[],
): readonly Route[] => [
  ...recordRoutes,
  ...endpointRoutes,
  ...(has.v2 ? v2Routes : []),
  ...(has.redirect ? redirectRoutes : []),
  ...ofPlugins,
];
