// The public listener: the steps of a request before its handler, and the handlers and routes of all interfaces.
import type { RequestListener } from 'node:http';
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { freshnessRules } from '../http/cache-headers.js';
import { contextOf, createAcceptRequestId, createOpenContext } from '../http/context.js';
import { allowOrigin } from '../http/cors.js';
import {
  createReportUnexpected,
  type RenderError,
  type SendError,
  createSendError,
  renderRecordError,
} from '../http/error-reply.js';
import { createScanHeaders } from '../http/fast-headers.js';
import { type FailingListener, guard } from '../http/guard.js';
import { createChecksLogin, type ChecksLogin } from '../http/identity.js';
import { createSendPrepared } from '../http/prepared-responses.js';
import { createSendRaw } from '../http/raw-response.js';
import { createCheckStep, createRequestCheck } from '../http/request-check.js';
import { createRequestLog } from '../http/request-log.js';
import type { Listener, Route } from '../http/route-table.js';
import { createRouter, step, unlessSent } from '../http/router.js';
import { type Owner, ownerOf } from '../http/target.js';
import { answerUnrouted } from '../http/unrouted.js';
import { createForwardRead } from '../record/forward-read.js';
import { createForwarding, type Forwarding } from '../record/forward.js';
import { createReadRecord } from '../record/read.js';
import { endpointRoutes, recordRoutes } from '../record/routes.js';
import { createWriteRoute } from '../record/write.js';
import { createRedirect } from '../redirect/redirect.js';
import { redirectRoutes } from '../redirect/routes.js';
import { createV2 } from '../v2/answer.js';
import { v2Routes } from '../v2/routes.js';
import { createUnclaimedNames, type UnclaimedNames } from '../v2/unclaimed-names.js';
import { createSharedLock, type HandleLock } from '../write/lock.js';
import { createCarryOut } from '../write/write.js';
import { type Admission, createAdmission } from './admission.js';
import type { CreateHandlers, Host, Plugin, PublicHandlers } from './plugin.js';

export interface PublicListener {
  listener: RequestListener;
  /** Writes the buffered log lines. */
  close: () => void;
}

/** Creates the public listener; after a reload, requests in flight finish with the previous settings. */
export function createPublicListener(
  host: Host,
  plugins: readonly Plugin[],
  handlers: readonly CreateHandlers[],
): PublicListener {
  const { settings, cache, clock } = host;
  const servers = upstreamServers(settings.current);
  const kept: KeptParts = {
    ...host,
    ...createForwarding(settings.current, host),
    plugins,
    handlers,
    checksLogin: createChecksLogin(host.upstreams.checksLogins),
    lock: createSharedLock({ ...settings.current, servers }, cache, host.findClient),
    unclaimed: createUnclaimedNames({ now: clock.now, shared: cache.commands }),
  };
  let current = createListener(settings.current, host, kept);
  settings.onReload(() => {
    current = createListener(settings.current, host, kept);
  });
  host.hooks.admitMessage.push((address, handle) => current.admitMessage(address, handle));
  return {
    listener: (req, res) => {
      current.listener(req, res);
    },
    close() {
      kept.hits.flush();
    },
  };
}

/** Creates the parts that a reload replaces. */
function createListener(
  config: Config,
  host: Host,
  kept: KeptParts,
): { listener: RequestListener; admitMessage: Admission['admitMessage'] } {
  const { clock, hits, pseudonym } = host;
  const admission = createAdmission(host.hooks, host);
  const { judgeHits, admit, admitMessage } = admission;
  const check = createRequestCheck({ ...config.http, ...admission });
  const acceptRequestId = createAcceptRequestId(host.isTrustedProxy);
  const prepared = host.preparedCache();
  const sendRaw = createSendRaw();
  const routes = routesOf(config, kept.plugins);
  const sendPrepared = createSendPrepared({
    ...freshnessRules(config, host),
    ...{ check, acceptRequestId, prepared, hits, sendRaw, now: clock.now },
    scanHeaders: createScanHeaders(pseudonym),
  });
  const router = createRouter({
    ...createInterfaces(config, host, { ...kept, ...admission, prepared, routes }),
    routes,
    open: createOpenContext({ acceptRequestId, sendRaw, now: clock.now }),
    // The steps of a request before its handler, in this order:
    steps: [
      // If a rule concerns responses from memory, it judges before all of them.
      judgeHits && step(judgeHits),
      judgeHits && unlessSent((req, res) => sendPrepared(req, res, contextOf(res).target.raw)),
      // Before all steps that may fail, so that a refusal is logged, and readable by scripts.
      step(createRequestLog(host, host.findClient)),
      step(allowOrigin),
      step(createCheckStep({ check, pseudonym })),
    ],
    // Last, because it takes tokens, for which it may ask Redis.
    admit: async (req, res) => {
      contextOf(res).caller = await admit(req, res);
    },
  });
  // A repeated request for a record in memory needs neither a context nor a route.
  const listen: FailingListener =
    judgeHits === undefined
      ? (req, res, fail) => sendPrepared(req, res, req.url ?? '') || router(req, res, fail)
      : router;
  const guarded = guard(listen, createReportUnexpected(host));
  return { listener: host.hooks.spans.reduce((inner, { wrap }) => wrap(inner), guarded), admitMessage };
}

/** The parts that a reload preserves. */
interface KeptParts extends Host, Forwarding {
  plugins: readonly Plugin[];
  /** Creates the handlers of plugins. */
  handlers: readonly CreateHandlers[];
  lock: HandleLock;
  /** Minted names whose response was lost. */
  unclaimed: UnclaimedNames;
  checksLogin: ChecksLogin;
}

interface InterfaceParts extends KeptParts, Admission {
  prepared: PreparedCache;
  routes: readonly Route[];
}

interface Interfaces {
  /** By the `handler` of a route. */
  handlers: Readonly<Record<string, Listener | undefined>>;
  /** Responds to a path without a route for the method. */
  otherwise: Listener;
  sendError: SendError;
}

/** Creates the enabled interfaces. */
function createInterfaces(config: Config, host: Host, parts: InterfaceParts): Interfaces {
  const carryOut = createCarryOut({ ...parts, rules: config.deletion });
  const forwardRead = createForwardRead({
    ...parts,
    now: host.clock.now,
    gzipMinBytes: config.http.gzipMinBytes,
  });
  const v2 = config.v2.enabled ? createV2(config, host, { ...parts, carryOut }) : undefined;
  const redirect = config.redirect.enabled ? createRedirect(config, host, parts) : undefined;
  const ofPlugins = parts.handlers.map((create) => create({ ...parts, settings: config }));
  const renderers: { [owner in Owner]?: RenderError | undefined } = {
    v2: v2?.renderError,
    redirect: redirect?.renderError,
  };
  return {
    handlers: {
      ...(Object.assign({}, ...ofPlugins) as PublicHandlers),
      ...redirect?.handlers,
      read: createReadRecord(config, host, { ...parts, forwardRead }),
      forwardRead,
      forward: parts.forward,
      write: createWriteRoute({ ...parts, carryOut }),
      v2: v2?.route,
    },
    otherwise: (req, res) => {
      const isV2 = ownerOf(contextOf(res).target.path) === 'v2';
      return ((isV2 && v2?.route) || answerUnrouted)(req, res);
    },
    sendError: createSendError({
      onUnexpected: createReportUnexpected(host),
      render: (failure, call) =>
        (renderers[ownerOf(contextOf(call.res).target.path)] ?? renderRecordError)(failure, call),
    }),
  };
}

type Switch = 'v2' | 'redirect';

export const publicRoutes = (
  has: Readonly<Record<Switch, boolean>>,
  ofPlugins: readonly Route[],
): readonly Route[] => [
  ...recordRoutes,
  ...endpointRoutes,
  ...(has.v2 ? v2Routes : []),
  ...(has.redirect ? redirectRoutes : []),
  ...ofPlugins,
];

/** Returns the routes of the enabled interfaces. */
const routesOf = (config: Config, plugins: readonly Plugin[]): readonly Route[] =>
  publicRoutes(
    { v2: config.v2.enabled, redirect: config.redirect.enabled },
    plugins.flatMap((plugin) => plugin.routes?.(config) ?? []),
  );
