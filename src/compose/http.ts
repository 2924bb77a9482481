// Creates the handler of the public listener: the read path first, then the Express pipeline.
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Cache } from '../cache/cache.js';
import type { PreparedDeps } from '../cache/prepared-cache.js';
import type { Coordination } from '../coordination/coordination.js';
import { createForwardRead } from '../record/pass-through.js';
import { type Client, createFindClient, createProxyTrust } from '../server/client-address.js';
import { type ReportUnexpected, createReportUnexpected } from '../http/error-reply.js';
import { type FailingListener, type Listener, guard } from '../http/guard.js';
import { createPipeline } from '../record/pipeline.js';
import { type ReadParts, createRead } from '../record/read.js';
import { createRequestCheck } from '../record/request-checks.js';
import { ResponseCache } from '../record/response-cache.js';
import { createWriteRoute } from '../record/write.js';
import { createAcceptRequestId } from '../http/request-id.js';
import { createRequestLog } from '../http/request-log.js';
import { createRunStepsOf } from '../http/request-work.js';
import { type ChecksLogin, createChecksLogin } from '../http/identity.js';
import { createScanHeaders } from '../http/fast-headers.js';
import { type Route, RouteTable } from '../http/route-table.js';
import { brandingOf } from '../html/layout.js';
import type { Hits } from '../observe/hits.js';
import type { NativeAnswer } from '../native/answer.js';
import { takesMessages } from '../native/routes.js';
import { createTunnelHit, createTunnelRoute } from '../native/tunnel.js';
import { createRedirect } from '../redirect/redirect.js';
import type { Resolver } from '../resolver/resolver.js';
import { type TrafficPolicy, createTrafficPolicy } from '../traffic/policy.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { SharedDeps } from './shared-deps.js';
import { type Forwarding, createForwarding } from '../record/forwarding.js';
import type { Upstreams } from '../upstream/upstreams.js';
import { type HandleLock, createHandleLock } from '../write/handle-lock.js';
import type { OriginOf } from '../write/origin-record.js';
import { type CarryOut, createCarryOut } from '../write/write.js';
import { makeBatch, makeV2 } from './interfaces.js';
import { makePublicOpenApi } from './openapi.js';
import { routesOf } from './routes.js';

/** What requests are answered from. */
interface Backends {
  resolver: Resolver<unknown>;
  cache: Cache;
  coordination: Coordination;
  upstreams: Upstreams;
  native: NativeAnswer;
  limitMiss: LimitMiss;
  originOf: OriginOf;
  preparing: PreparedDeps;
  hits: Hits;
}

interface Handler {
  handler: RequestListener;
  /** Judges native messages over TCP by the same traffic rules. */
  admitMessage: TrafficPolicy['admitMessage'];
  /** Rebuilds the parts that a reload may change; requests in flight finish on the old ones. */
  rebuild: () => void;
  /** Writes the buffered log lines, and closes the connections to the reverse look-up service. */
  close: () => Promise<void>;
}

/** What a reload keeps. */
interface KeptOnReload extends Backends, Forwarding {
  lock: HandleLock;
  checksLogin: ChecksLogin;
}

export function makeHandler(shared: SharedDeps, backends: Backends): Handler {
  const findClient = createFindClient(shared.config.http.trustedProxies);
  const kept: KeptOnReload = {
    ...backends,
    ...createForwarding(shared.config, {
      upstreams: backends.upstreams,
      resolver: backends.resolver,
      runStepsOf: createRunStepsOf(shared.slicer, findClient),
      pseudonym: shared.pseudonym,
      bodies: shared.bodies,
      createDispatcher: shared.createDispatcher,
    }),
    checksLogin: createChecksLogin(backends.upstreams.checksLogins),
    lock: createHandleLock({ ...backends, findClient }),
  };
  let parts = makeParts(shared, kept);
  return {
    handler: (req, res) => {
      parts.listener(req, res);
    },
    admitMessage: (address, handle) => parts.admitMessage(address, handle),
    rebuild() {
      parts = makeParts(shared, kept);
    },
    async close() {
      kept.hits.flush();
      await kept.reverse?.close();
    },
  };
}

/** What the read path and the pipeline share. */
interface RequestSteps extends Pick<
  ReadParts,
  'scanHeaders' | 'check' | 'admit' | 'requestLog' | 'acceptRequestId' | 'runStepsOf'
> {
  findClient: (req: IncomingMessage) => Client;
  onUnexpected: ReportUnexpected;
  charge: TrafficPolicy['charge'];
  refusalOfHandle: TrafficPolicy['refusalOfHandle'];
  responses: ResponseCache;
}

/** What a reload replaces. */
interface ReloadedParts extends Pick<Handler, 'admitMessage'> {
  listener: RequestListener;
}

function makeParts(shared: SharedDeps, kept: KeptOnReload): ReloadedParts {
  const routes = routesOf(shared.config);
  const table = new RouteTable(routes);
  const policy = createTrafficPolicy(shared.config, shared.context, { ...kept, table });
  return {
    listener: makeListener(shared, kept, { policy, routes, table }),
    admitMessage: policy.admitMessage,
  };
}

interface ListenerParts {
  policy: TrafficPolicy;
  routes: readonly Route[];
  table: RouteTable;
}

function makeListener(
  shared: SharedDeps,
  kept: KeptOnReload,
  { policy, routes, table }: ListenerParts,
): RequestListener {
  const { config, context, now, slicer, tracer, pseudonym } = shared;
  const onUnexpected = createReportUnexpected(context);
  const findClient = createFindClient(config.http.trustedProxies);
  const steps: RequestSteps = {
    scanHeaders: createScanHeaders(pseudonym),
    check: createRequestCheck({
      maxRequestLineBytes: config.http.maxRequestLineBytes,
      refusalOf: policy.refusalOf,
    }),
    admit: policy.admit,
    charge: policy.charge,
    refusalOfHandle: policy.refusalOfHandle,
    requestLog: createRequestLog(context, findClient),
    acceptRequestId: createAcceptRequestId(createProxyTrust(config.http.trustedProxies)),
    responses: new ResponseCache(kept.preparing),
    onUnexpected,
    findClient,
    runStepsOf: createRunStepsOf(slicer, findClient),
  };
  const read = createRead(config, context, { ...kept, ...steps });
  // Guarded by itself, because Express passes errors to its third argument.
  const pipeline = guard(makePipeline(shared, kept, { ...steps, routes, table }), onUnexpected);
  // A rule for handles has to see each message.
  const mayHit = config.native.tunnel && policy.refusalOfHandle === undefined;
  const tunnelHit = mayHit
    ? createTunnelHit({
        ...kept.native,
        ...steps,
        takesMessages: (path) => takesMessages(table, path),
        now,
      })
    : undefined;
  const handler: Listener = (req, res) => {
    const answering = read(req, res);
    if (answering !== false) return answering;
    const hit = tunnelHit?.(req, res);
    if (hit instanceof Promise) {
      return hit.then((isSent) => {
        if (!isSent) pipeline(req, res);
      });
    }
    pipeline(req, res);
    return undefined;
  };
  const judged = policy.wrap(handler);
  return guard(tracer?.wrap(judged) ?? judged, onUnexpected);
}

function makePipeline(
  shared: SharedDeps,
  kept: KeptOnReload,
  steps: RequestSteps & Omit<ListenerParts, 'policy'>,
): FailingListener {
  const { config } = shared;
  const carryOut = createCarryOut({ ...kept, rules: config.deletion });
  const epic = config.v2.enabled
    ? makeV2(shared, { ...kept, carryOut, runStepsOf: steps.runStepsOf })
    : undefined;
  const pages = config.redirect.enabled
    ? createRedirect(config, shared.context, { ...kept, ...steps, bodies: shared.bodies })
    : undefined;
  return createPipeline({
    ...steps,
    handlers: {
      ...makeRecordHandlers(shared, kept, { ...steps, carryOut }),
      openApi: makePublicOpenApi(config, steps.routes, brandingOf(config)),
      reverseLookup: kept.reverse?.passThrough,
      v2: epic?.route,
      tunnel: createTunnelRoute({ ...kept.native, ...kept, ...steps }),
      ...pages?.handlers,
    },
    fallbacks: { ...(epic && { v2: epic.route }) },
    errorReplies: {
      ...(epic && { v2: epic.errorReply }),
      ...(pages && { redirect: pages.errorReply }),
    },
    jsonpWithCredentials: config.http.jsonpWithCredentials,
    trustedProxies: config.http.trustedProxies,
  });
}

function makeRecordHandlers(
  shared: SharedDeps,
  kept: KeptOnReload,
  steps: RequestSteps & { carryOut: CarryOut },
) {
  const { config } = shared;
  const { resolver, passThrough, withBody, upstreams } = kept;
  const { runStepsOf, charge, refusalOfHandle } = steps;
  const { serverOf } = upstreams;
  return {
    passThrough,
    forwardRead: createForwardRead(kept),
    write: createWriteRoute({ ...kept, ...steps }),
    ...(config.batch.enabled &&
      makeBatch(shared, { resolver, withBody, charge, refusalOfHandle, serverOf, runStepsOf })),
  };
}
