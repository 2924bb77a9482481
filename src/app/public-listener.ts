// The public listener: what happens to a request before the handler of its route.
import type { RequestListener } from 'node:http';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import { contextOf, createAcceptRequestId, createOpenContext } from '../http/context.js';
import { allowOrigin } from '../http/cors.js';
import { createReportUnexpected, type FailingListener, guard } from '../http/error-reply.js';
import { createSendPrepared } from '../http/prepared-responses.js';
import { createChecksLogin } from '../http/identity.js';
import { createSendRaw } from '../http/raw-response.js';
import { createCheckStep, createRequestCheck, createRequestLog } from '../http/request-steps.js';
import { createRouter, step, unlessSent } from '../http/router.js';
import { createForwarding } from '../record/forward.js';
import { createUnclaimedNames } from '../v2/unclaimed-names.js';
import { createSharedLock } from '../write/lock.js';
import { type Admission, createAdmission } from './admission.js';
import { type KeptParts, createInterfaces } from './interfaces.js';
import type { Host } from './plugin.js';
import { routesOf } from './routes.js';

export interface PublicListener {
  listener: RequestListener;
  /** Writes the buffered log lines. */
  close: () => void;
}

/** Creates the public listener; after a reload, requests in flight finish with the previous settings. */
export function createPublicListener(
  host: Host,
  ofPlugins: Pick<KeptParts, 'plugins' | 'handlers'>,
): PublicListener {
  const { settings, cache, clock } = host;
  const servers = upstreamServers(settings.current);
  const kept: KeptParts = {
    ...host,
    ...createForwarding(host),
    ...ofPlugins,
    checksLogin: createChecksLogin(host.upstreams.checksLogins),
    lock: createSharedLock(settings.current, servers, cache, host.findClient),
    unclaimed: createUnclaimedNames(clock.now, cache.commands),
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
  const { clock, pseudonym } = host;
  const admission = createAdmission(host.hooks, host);
  const { judgeHits, admit, admitMessage } = admission;
  const check = createRequestCheck(config.http.maxRequestLineBytes, admission.refusalOf);
  const acceptRequestId = createAcceptRequestId(host.isTrustedProxy);
  const sendRaw = createSendRaw();
  const routes = routesOf(config, kept.plugins);
  const sendPrepared = createSendPrepared(config, host, check, sendRaw);
  const interfaces = createInterfaces(config, host, { ...kept, ...admission, routes });
  const router = createRouter(routes, interfaces, {
    open: createOpenContext(acceptRequestId, sendRaw, clock.now),
    // The steps of a request before its handler, in this order:
    steps: [
      // If a rule concerns responses from memory, it judges before all of them.
      judgeHits && step(judgeHits),
      judgeHits && unlessSent((req, res) => sendPrepared(req, res, contextOf(res).target.raw)),
      // Before all steps that may fail, so that a refusal is logged, and readable by scripts.
      step(createRequestLog(host)),
      step(allowOrigin),
      step(createCheckStep(check, pseudonym, config.http.jsonpWithCredentials)),
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
