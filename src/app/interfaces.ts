// Creates the handlers of the record interface, ePIC v2, redirects and plugins.
import type { Config } from '../config/schema.js';
import { contextOf } from '../http/context.js';
import {
  type RenderError,
  createReportUnexpected,
  createSendError,
  renderRecordError,
} from '../http/error-reply.js';
import type { ChecksLogin } from '../http/identity.js';
import type { Route } from '../http/route-table.js';
import { type Owner, ownerOf } from '../http/target.js';
import { type Interfaces, answerUnrouted } from '../http/router.js';
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
  routes: readonly Route[];
}

/** Creates the enabled interfaces. */
export function createInterfaces(config: Config, host: Host, parts: InterfaceParts): Interfaces {
  const carryOut = createCarryOut(config.deletion, parts.lock, host);
  const forwardRead = createForwardRead(config, host, parts.forward, parts.checksLogin);
  const v2 = config.v2.enabled ? createV2(config, host, { ...parts, carryOut }) : undefined;
  const redirect = config.redirect.enabled
    ? createRedirect(config, host, parts.admit, parts.refusalOfHandle)
    : undefined;
  const ofPlugins = parts.handlers.map((create) => create({ ...parts, settings: config }));
  const renderers: { [owner in Owner]?: RenderError | undefined } = {
    v2: v2?.renderError,
    redirect: redirect?.renderError,
  };
  return {
    handlers: {
      ...(Object.assign({}, ...ofPlugins) as PublicHandlers),
      ...redirect?.handlers,
      read: createReadRecord(config, host, parts.admit, forwardRead),
      forwardRead,
      forward: parts.forward,
      write: createWriteRoute(host, parts, carryOut),
      v2: v2?.route,
    },
    otherwise: (req, res) => {
      const isV2 = ownerOf(contextOf(res).target.path) === 'v2';
      return ((isV2 && v2?.route) || answerUnrouted)(req, res);
    },
    sendError: createSendError(createReportUnexpected(host), (failure, call) =>
      (renderers[ownerOf(contextOf(call.res).target.path)] ?? renderRecordError)(failure, call),
    ),
  };
}
