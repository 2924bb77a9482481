// Creates the public listener, which passes each request to the admission, the read path and the route's
// handler, until one of them responds.
import type { RequestListener } from 'node:http';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import type { Context } from '../context.js';
import { createReportUnexpected } from '../http/error-reply.js';
import { createScanHeaders } from '../http/fast-headers.js';
import { type Listener, guard } from '../http/guard.js';
import { type ChecksLogin, createChecksLogin } from '../http/identity.js';
import { createAcceptRequestId } from '../http/context.js';
import { createRequestCheck } from '../http/request-check.js';
import { createRequestLog } from '../http/request-log.js';
import { type Route, RouteTable, hasConditionalRoute } from '../http/route-table.js';
import { createOpenApi } from '../openapi/serve.js';
import { type Forwarding, createForwarding } from '../record/forwarding.js';
import { createForwardRead } from '../record/pass-through.js';
import { createPipeline } from '../record/pipeline.js';
import { type ReadParts, createRead } from '../record/read.js';
import { createWriteRoute } from '../record/write.js';
import { type RedirectInterface, createRedirect } from '../redirect/redirect.js';
import { type Admission, createAdmission } from './admission.js';
import type { CreateHandlers, Host, Plugin, PublicHandlers } from './plugin.js';
import { routesOf } from './routes.js';
import { createV2 } from '../v2/answer.js';
import { type UnclaimedNames, createUnclaimedNames } from '../v2/unclaimed-names.js';
import { type HandleLock, createHandleLock } from '../write/lock/handle-lock.js';
import { createSharedLock } from '../write/lock/key-lock.js';
import { createCarryOut } from '../write/write.js';

export interface PublicListener {
  listener: RequestListener;
  /** Writes the buffered log lines. */
  close: () => void;
}

interface PluginParts {
  plugins: readonly Plugin[];
  handlers: readonly CreateHandlers[];
}

/** The parts that a reload preserves. */
interface KeptParts extends Host, Forwarding, PluginParts {
  lock: HandleLock;
  /** Minted names whose response was lost. */
  unclaimed: UnclaimedNames;
  checksLogin: ChecksLogin;
}

/** Creates the public listener; after a reload, requests in flight finish with the previous settings. */
export function createPublicListener(host: Host, ofPlugins: PluginParts): PublicListener {
  const { settings, cache, clock } = host;
  const servers = upstreamServers(settings.current);
  const shared = { now: clock.now, shared: cache.commands };
  const kept: KeptParts = {
    ...host,
    ...createForwarding(settings.current, host),
    ...ofPlugins,
    checksLogin: createChecksLogin(host.upstreams.checksLogins),
    lock: createHandleLock({ ...host, keyLock: createSharedLock({ ...settings.current, servers }, cache) }),
    unclaimed: createUnclaimedNames(shared),
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
  context: Context,
  kept: KeptParts,
): Pick<PublicListener, 'listener'> & Pick<Admission, 'admitMessage'> {
  const routes = routesOf(config, kept.plugins);
  const table = new RouteTable(routes);
  const admission = createAdmission(context.hooks, { ...kept, table });
  const steps: RequestSteps = {
    ...kept,
    ...admission,
    scanHeaders: createScanHeaders(kept.pseudonym),
    check: createRequestCheck({ ...config.http, ...admission }),
    hasConditionalRoute: (req, target) => hasConditionalRoute(table, req, target),
    requestLog: createRequestLog(context, kept.findClient),
    acceptRequestId: createAcceptRequestId(kept.isTrustedProxy),
    prepared: kept.preparedCache(),
  };
  const onUnexpected = createReportUnexpected(context);
  const pages = config.redirect.enabled ? createRedirect(config, context, steps) : undefined;
  const read = createRead(config, context, { ...steps, findRedirect: pages?.findRedirect });
  const answer = createInterfaces(config, context, { ...steps, routes, table, pages });
  const handler: Listener = (req, res) => {
    const reading = read(req, res);
    return reading === false ? answer(req, res, table.locate(req.url ?? '')) : reading;
  };
  const traced = context.hooks.spans.reduce<Listener>(
    (inner, { wrap }) => wrap(inner),
    admission.wrap(handler),
  );
  return {
    listener: guard(traced, onUnexpected),
    admitMessage: admission.admitMessage,
  };
}

/** The parts shared by the read path and the pipeline. */
interface RequestSteps extends KeptParts, Admission, Omit<ReadParts, 'findRedirect' | keyof KeptParts> {}

const DESCRIPTION = {
  summary: 'Resolve and write persistent identifiers through a caching proxy.',
  // Limited to five minutes, because an update of the proxy may change the document.
  cacheControl: 'public, max-age=300',
};

interface InterfaceParts extends RequestSteps {
  routes: readonly Route[];
  table: RouteTable;
  pages: RedirectInterface | undefined;
}

/** Creates the enabled interfaces. */
function createInterfaces(
  config: Config,
  context: Context,
  steps: InterfaceParts,
): ReturnType<typeof createPipeline> {
  const writing = { rules: config.deletion, hooks: context.hooks };
  const parts = { ...steps, carryOut: createCarryOut({ ...steps, ...writing }) };
  const epic = config.v2.enabled ? createV2(config, context, parts) : undefined;
  const { pages } = steps;
  return createPipeline(config, context, {
    ...parts,
    plainHandlers: {
      ...(Object.assign(
        {},
        ...parts.handlers.map((create) => create({ ...parts, settings: config })),
      ) as PublicHandlers),
      ...pages?.handlers,
    },
    handlers: {
      passThrough: parts.passThrough,
      forwardRead: createForwardRead({
        ...parts,
        hooks: context.hooks,
        now: context.clock.now,
        gzipMinBytes: config.http.gzipMinBytes,
      }),
      write: createWriteRoute(parts),
      openApi: createOpenApi(config, { ...DESCRIPTION, routes: parts.routes }),
      v2: epic?.route,
    },
    fallbacks: { ...(epic && { v2: epic.route }) },
    errorReplies: { ...(epic && { v2: epic.sendError }), ...(pages && { redirect: pages.sendError }) },
  });
}
