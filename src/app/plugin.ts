// The contract of a plugin: what it declares, and what it gets and returns when it starts.
import type { Cache } from '../cache/cache.js';
import type { Config } from '../config/schema.js';
import type { ConfigPart } from '../config/sections.js';
import type { Context } from '../context.js';
import type { HandleRef } from '../handle/handle.js';
import type { Hooks } from '../hooks.js';
import type { ServiceError } from '../errors.js';
import type { AdminHandler } from '../http/express-listener.js';
import type { Route } from '../http/route-table.js';
import type { MetricEntry } from '../observe/metric-list.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Upstreams } from '../upstream/upstreams.js';

/** The parts of the proxy that a plugin may use. */
export interface Host {
  readonly log: Context['log'];
  readonly metrics: Context['metrics'];
  readonly clock: Context['clock'];
  readonly cache: Cache;
  readonly resolver: Resolver<unknown>;
  readonly upstreams: Upstreams;
  readonly refOf: (text: string) => HandleRef;
  readonly isTrustedProxy: (address: string) => boolean;
  /** Resolves once the snapshot and the seed have been read. */
  readonly whenRestored: () => Promise<void>;
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
