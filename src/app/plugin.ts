// The contract of a plugin: what it declares, and what it gets and returns when it starts.
import type { Cache } from '../cache/cache.js';
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Restoring } from '../cache/snapshot/restoring.js';
import type { Live } from '../config/live.js';
import type { Config } from '../config/schema.js';
import type { ConfigPart } from '../config/sections.js';
import type { Context } from '../context.js';
import type { Hooks } from '../hooks.js';
import type { ServiceError } from '../errors.js';
import type { AdminHandler } from '../http/express-listener.js';
import type { MemoryBudget } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Route } from '../http/route-table.js';
import type { Hits } from '../observe/hits.js';
import type { MetricEntry } from '../observe/metric-list.js';
import type { Resolver } from '../resolver/resolver.js';
import type { FindClient, IsTrustedProxy } from '../server/client-address.js';
import type { TimeSlicer } from '../time-slicer.js';
import type { LimitedNetworks } from '../traffic/limited-networks.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { createPools } from '../upstream/connections.js';
import type { RefOf } from '../upstream/routing.js';
import type { Upstreams } from '../upstream/upstreams.js';
import type { OriginOf } from '../write/origin-record.js';

/** The parts of the core that the interfaces and the plugins share. */
export interface Host extends Context {
  readonly settings: Live<Config>;
  readonly cache: Cache;
  readonly resolver: Resolver<unknown>;
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
  readonly restoring: Restoring;
  /** Resolves once the snapshot and the seed have been read. */
  readonly whenRestored: () => Promise<void>;
  readonly limitedNetworks: LimitedNetworks;
  readonly limitMiss: LimitMiss;
}

/** Handlers on the admin listener, by the `id` of their route. */
export type AdminHandlers = Readonly<Record<string, AdminHandler>>;

/** The function of an enabled plugin for each hook that it needs, and the handlers of its admin routes. */
export type Started = { readonly [Name in keyof Hooks]?: Hooks[Name][number] | undefined } & {
  readonly adminHandlers?: AdminHandlers;
};

interface PluginModule<Settings extends Config> {
  start(host: Host, settings: Settings): Started;
}

/** `Settings`: the sections of the core, and those of the plugin. */
export interface Plugin<Settings extends Config = Config> extends ConfigPart<Settings> {
  readonly name: string;
  /** Metrics, whose series exist also while the plugin is off. */
  readonly metrics?: Readonly<Record<string, MetricEntry>>;
  /** Members of `GET /stats` while the plugin is off. */
  readonly statistics?: object;
  /** Routes on the admin listener, which exist also while the plugin is off. */
  readonly adminRoutes?: readonly Route[];
  /** The response to these routes while the plugin is off. */
  readonly offError?: () => ServiceError;
  isEnabled(settings: Settings): boolean;
  /** Imports the plugin; not called while it is off. */
  load(): Promise<PluginModule<Settings>>;
}

/** The imported modules of the enabled plugins, in order. */
export type LoadedPlugins = readonly PluginModule<Config>[];

/** Returns the metrics of the plugins. */
export const metricsOf = (plugins: readonly Plugin[]): MetricEntry[] =>
  plugins.flatMap(({ metrics = {} }) => Object.values(metrics));

/** Imports the enabled plugins. */
export const loadPlugins = (plugins: readonly Plugin[], settings: Config): Promise<LoadedPlugins> =>
  Promise.all(plugins.filter((plugin) => plugin.isEnabled(settings)).map((plugin) => plugin.load()));

/** Starts the plugins, and adds their functions to the hooks. Returns the handlers of their admin routes. */
export function startPlugins(
  loaded: LoadedPlugins,
  { host, hooks, settings }: { host: Host; hooks: Hooks; settings: Config },
): AdminHandlers {
  let handlers: AdminHandlers = {};
  for (const plugin of loaded) {
    const { adminHandlers, ...functions } = plugin.start(host, settings);
    for (const [name, take] of Object.entries(functions))
      if (take !== undefined) (hooks[name as keyof Hooks] as unknown[]).push(take);
    handlers = { ...handlers, ...adminHandlers };
  }
  return handlers;
}
