// The contract of a plugin: what it declares, and what it gets and returns when it starts.
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Cache } from '../cache/cache.js';
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import type { ConfigPart } from '../config/sections.js';
import type { Context } from '../context.js';
import type { Hooks, PluginListener } from '../hooks.js';
import type { ErrorEntry, ServiceError } from '../errors.js';
import type { RefusalOfHandle } from '../http/error-reply.js';
import type { AdminHandler } from '../http/router.js';
import type { MemoryBudget, WithBody } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Listener, Route } from '../http/route-table.js';
import type { Hits } from '../observe/hits.js';
import type { Readiness } from '../observe/health.js';
import type { MetricEntry } from '../observe/metric-list.js';
import type { Resolver } from '../resolver/resolver.js';
import type { FindClient, IsTrustedProxy } from '../server/client-address.js';
import type { TimeSlicer } from '../time-slicer.js';
import type { createPools } from '../upstream/connections.js';
import type { ServerKeys } from '../upstream/failure.js';
import type { RefOf } from '../upstream/routing.js';
import { HANDLE_SERVER } from '../upstream/handle-server.js';
import type { RecordSource } from '../upstream/contract.js';
import type { Upstreams } from '../upstream/upstreams.js';
import type { OriginOf } from '../write/origin-record.js';
import type { Operations } from './operations.js';

/** The parts of the core. */
export interface Core<Settings extends Config = Config> extends Context {
  readonly settings: Live<Settings>;
  readonly cache: Cache;
  readonly resolver: Resolver;
  readonly upstreams: Upstreams;
  readonly originOf: OriginOf;
  readonly refOf: RefOf;
  /** Returns the current prepared responses, which a reload replaces. */
  readonly preparedCache: () => PreparedCache;
  readonly hits: Hits;
  readonly isTrustedProxy: IsTrustedProxy;
  readonly findClient: FindClient;
  /** Name of this proxy in `Via`. */
  readonly pseudonym: string;
  /** Limits the work of all requests. */
  readonly slicer: TimeSlicer;
  readonly runStepsOf: RunStepsOf;
  /** Memory budget for request bodies. */
  readonly bodies: MemoryBudget;
  /** Memory budget for responses that clients have not read. */
  readonly unsent: MemoryBudget;
  /** Creates connections; undefined for undici pools. */
  readonly createDispatcher: typeof createPools | undefined;
  /** Returns `cache.staleIfError` for a key; do not keep it, because a reload may change it. */
  readonly staleIfErrorMs: (key: string) => number;
  /** Resolves once all plugins have put their records into memory. */
  readonly whenRestored: () => Promise<void>;
}

/** The core, and what watches and operates it: all that interfaces and plugins share. */
export interface Host<Settings extends Config = Config> extends Core<Settings> {
  readonly operations: Operations;
  /** Checks for `/readyz`. */
  readonly readiness: Readiness;
  /** Returns the duration (ms) of an event-loop block in the last 10 s; undefined if there was none. */
  readonly blockedMs: () => number | undefined;
}

/** Handlers on the admin listener, by the `id` of their route. */
export type AdminHandlers = Readonly<Record<string, AdminHandler>>;

export type PublicHandlers = Readonly<Record<string, Listener>>;

/** Parts of the public listener for the handlers of its routes, which each reload creates. */
export interface HandlerParts {
  settings: Config;
  /** All routes of the listener. */
  routes: readonly Route[];
  withBody: WithBody;
  /** Returns the error of a traffic rule that rejects a handle in the body. Undefined without such rules. */
  refusalOfHandle: RefusalOfHandle | undefined;
  /** Charges a request with many handles for `more` requests. @throws ServiceError RATE_LIMITED */
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

interface StartedInterfaces {
  readonly handlers?: CreateHandlers;
  readonly adminHandlers?: AdminHandlers;
  /** Creates the admin listener. */
  readonly admin?: (interfaces: AdminInterfaces) => RequestListener;
  readonly listeners?: readonly PluginListener[];
}

/** The function of an enabled plugin for each hook that it needs, and its interfaces. */
export type Started = {
  readonly [Name in keyof Hooks]?: Hooks[Name][number] | undefined;
} & StartedInterfaces;

/** The interfaces of all enabled plugins. */
export interface PluginInterfaces {
  readonly handlers: readonly CreateHandlers[];
  readonly adminHandlers: AdminHandlers;
  readonly admin: StartedInterfaces['admin'];
  readonly listeners: readonly PluginListener[];
}

interface PluginModule<Settings extends Config> {
  /** Kinds of servers, which exist before the parts of `Host`. */
  readonly sources?: readonly RecordSource[];
  start?(host: Host<Settings>, settings: Settings): Started;
}

/** `Settings`: the sections of the core, and those of the plugin. */
export interface Plugin<Settings extends Config = Config> extends ConfigPart<Settings> {
  readonly name: string;
  readonly errors?: Readonly<Record<string, ErrorEntry>>;
  /** Metrics, whose series exist also while the plugin is off. */
  readonly metrics?: Readonly<Record<string, MetricEntry>>;
  /** Members of `GET /stats` while the plugin is off. */
  readonly statistics?: object;
  /** Routes on the public listener; the plugin returns their handlers when it starts. */
  routes?(settings: Settings): readonly Route[];
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
  /** Whether the plugin has read a file that may be replaced, so that a reload without changed keys applies. */
  reloadsFile?(settings: Settings): boolean;
  isEnabled(settings: Settings): boolean;
  /** Returns the maximum time that its `close` adds to a shutdown (ms), if that is more than a second. */
  shutdownMs?(settings: Settings): number;
  /** Imports the plugin; not called while it is off. */
  load(): Promise<PluginModule<Settings>>;
}

/** A server that a plugin calls. */
export interface PluginServer {
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

/** The imported modules of the enabled plugins, in order. */
export type LoadedPlugins = readonly PluginModule<Config>[];

/** Returns the metrics of the plugins. */
export const metricsOf = (plugins: readonly Plugin[]): MetricEntry[] =>
  plugins.flatMap(({ metrics = {} }) => Object.values(metrics));

/** Returns the time that plugins add to a shutdown (ms). They close concurrently. */
export const shutdownMsOf = (plugins: readonly Plugin[], settings: Config): number =>
  Math.max(0, ...plugins.map((plugin) => plugin.shutdownMs?.(settings) ?? 0));

/** Imports the enabled plugins. */
export const loadPlugins = (plugins: readonly Plugin[], settings: Config): Promise<LoadedPlugins> =>
  Promise.all(plugins.filter((plugin) => plugin.isEnabled(settings)).map((plugin) => plugin.load()));

/** Returns the kinds of servers: of the core, and of the plugins. */
export const sourcesOf = (loaded: LoadedPlugins): readonly RecordSource[] => [
  HANDLE_SERVER,
  ...loaded.flatMap(({ sources = [] }) => sources),
];

/** Starts the plugins, and adds their functions to the hooks. */
export function startPlugins(
  loaded: LoadedPlugins,
  { host, settings }: { host: Host; settings: Config },
): PluginInterfaces {
  const started = loaded.map((plugin) => {
    const {
      handlers,
      adminHandlers = {},
      admin,
      listeners = [],
      ...functions
    } = plugin.start?.(host, settings) ?? {};
    for (const [name, take] of Object.entries(functions))
      if (take !== undefined) (host.hooks[name as keyof Hooks] as unknown[]).push(take);
    return { handlers, adminHandlers, admin, listeners };
  });
  return {
    handlers: started.flatMap(({ handlers = [] }) => handlers),
    adminHandlers: Object.assign({}, ...started.map(({ adminHandlers }) => adminHandlers)) as AdminHandlers,
    admin: started.find(({ admin }) => admin !== undefined)?.admin,
    listeners: started.flatMap(({ listeners }) => listeners),
  };
}
