// Creates the handlers of the record interface, ePIC v2, redirects and plugins.
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import { contextOf } from '../http/context.js';
import {
  type RenderError,
  type SendError,
  createReportUnexpected,
  createSendError,
  renderRecordError,
} from '../http/error-reply.js';
import type { ChecksLogin } from '../http/identity.js';
import type { Listener, Route } from '../http/route-table.js';
import { type Owner, ownerOf } from '../http/target.js';
import { answerUnrouted } from '../http/router.js';
import type { Forwarding } from '../record/forward.js';
import { createForwardRead, createReadRecord } from '../record/read.js';
import { createWriteRoute } from '../record/write.js';
import { createRedirect } from '../redirect/redirect.js';
import { createV2 } from '../v2/answer.js';
import type { UnclaimedNames } from '../v2/unclaimed-names.js';
import type { HandleLock } from '../write/lock.js';
import { createCarryOut } from '../write/write.js';
import type { Admission } from './admission.js';
import type { CreateHandlers, Host, Plugin, PublicHandlers } from './plugin.js';

/** The parts that a reload preserves. */
export interface KeptParts extends Host, Forwarding {
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
export function createInterfaces(config: Config, host: Host, parts: InterfaceParts): Interfaces {
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
