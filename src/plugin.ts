// The contract of a plugin: what it declares, and what it gets and returns when it starts.
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Config } from './config/schema.js';
import type { ConfigPart } from './config/fields.js';
import type { Hooks, PluginListener } from './hooks.js';
import type { ErrorEntry, ServiceError } from './errors.js';
import type { Handler } from './http/context.js';
import type { RefusalOfHandle } from './http/error-reply.js';
import type { AdminHandler } from './http/router.js';
import type { WithBody } from './http/request-body.js';
import type { Route } from './http/route-table.js';
import type { MetricEntry } from './observe/metric-list.js';
import type { Forward } from './record/forward.js';
import type { ServerKeys } from './upstream/failure.js';
import type { RecordSource } from './upstream/contract.js';
import type { Host } from './host.js';

/** Handlers on the admin listener, by the `id` of their route. */
export type AdminHandlers = Readonly<Record<string, AdminHandler>>;

export type PublicHandlers = Readonly<Record<string, Handler>>;

/** Parts of the public listener for the handlers of its routes, which each reload creates. */
export interface HandlerParts {
  settings: Config;
  /** All routes of the listener. */
  routes: readonly Route[];
  withBody: WithBody;
  /** Forwards a request to a server, by default to that of its handle. */
  forward: Forward;
  /** Returns the error that rejects a handle in the body. Undefined if nothing judges single handles. */
  refusalOfHandle: RefusalOfHandle | undefined;
  /** Charges a request with many handles for `more` requests. @throws ServiceError */
  charge: (req: IncomingMessage, more: number) => Promise<void>;
}

/** Creates the handlers of public routes, by the `handler` of their route, at the start and at each reload. */
export type CreateHandlers = (parts: HandlerParts) => PublicHandlers;

/** The part of plugins on the admin listener. */
export interface AdminInterfaces {
  /** All plugins, with their routes. */
  plugins: readonly Plugin[];
  /** The handlers of the plugins that are on. */
  adminHandlers: AdminHandlers;
}

/** The function of an enabled plugin for each hook that it needs, and its interfaces. */
export type Started = {
  readonly [Name in keyof Hooks]?: Hooks[Name][number] | undefined;
} & {
  readonly handlers?: CreateHandlers;
  readonly adminHandlers?: AdminHandlers;
  /** Creates the admin listener. */
  readonly admin?: (interfaces: AdminInterfaces) => RequestListener;
  readonly listeners?: readonly PluginListener[];
};

export interface PluginModule<Settings extends Config> {
  /** Kinds of servers, which exist before the parts of `Host`. */
  readonly sources?: readonly RecordSource[];
  start?(host: Host<Settings>, settings: Settings): Started;
}

/** `Settings`: the sections of the core, and those of the plugin. */
export interface Plugin<Settings extends Config = Config> extends ConfigPart<Settings> {
  readonly name: string;
  readonly errors?: Readonly<Record<string, ErrorEntry>>;
  /** The values of `upstreams[].kind` that it adds; its module has their `sources`. */
  readonly serverKinds?: readonly string[];
  /** Metrics, whose series exist also while the plugin is off. */
  readonly metrics?: Readonly<Record<string, MetricEntry>>;
  /** Members of `GET /stats` while the plugin is off. */
  readonly statistics?: object;
  /** Routes on the public listener; the plugin returns their handlers when it starts. */
  readonly routes?: readonly Route[];
  /** Servers besides the Handle servers, for the probes and the limit of open files. */
  servers?(settings: Settings): readonly PluginServer[];
  /** Maximum connections to servers that the probes do not call, for the limit of open files. */
  connections?(settings: Settings): number;
  /** Client connections besides those of the public listener, for the limit of open files. */
  readonly clients?: {
    most(settings: Settings): number;
    withMost(settings: Settings, most: number): Settings;
  };
  /** Routes on the admin listener, which exist also while the plugin is off. */
  readonly adminRoutes?: readonly Route[];
  /** The response to these routes while the plugin is off. */
  readonly offError?: () => ServiceError;
  /**
   * Whether the plugin has read a file that may be replaced, so that a reload without changed keys applies. If its key is not
   * reloadable, a problem in `startProblems` is only a warning then: check the file again, and keep the last one without an error.
   */
  reloadsFile?(settings: Settings): boolean;
  /** Depends on keys that need a restart, because a reload imports no plugin. */
  isEnabled(settings: Settings): boolean;
  /** Returns the maximum time that its `close` adds to a shutdown (ms), if that is more than a second. */
  shutdownMs?(settings: Settings): number;
  /** Imports the plugin; not called while it is off. */
  load(): Promise<PluginModule<Settings>>;
}

/** A server that a plugin calls. */
interface PluginServer {
  /** Its name in the results of probes. */
  name: string;
  url: string;
  keys: ServerKeys;
  /** Maximum connections. */
  connections: number;
}

/** The sections of all plugins of a union. */
export type SettingsOf<P> = (
  P extends Plugin<infer Settings> ? (settings: Settings) => void : never
) extends (all: infer All extends Config) => void
  ? All
  : never;
