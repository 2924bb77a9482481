// Imports the enabled plugins, and starts them.
import type { Config } from '../config/schema.js';
import type { Hooks } from '../hooks.js';
import type { MetricEntry } from '../observe/metric-list.js';
import { HANDLE_SERVER } from '../upstream/handle-server.js';
import type { RecordSource } from '../upstream/contract.js';
import type { Host } from '../host.js';
import type { AdminHandlers, Plugin, PluginModule } from '../plugin.js';

/** The imported modules of the enabled plugins, in order. */
export type LoadedPlugins = readonly PluginModule<Config>[];

export const metricsOf = (plugins: readonly Plugin[]): MetricEntry[] =>
  plugins.flatMap(({ metrics = {} }) => Object.values(metrics));

export const loadPlugins = (plugins: readonly Plugin[], settings: Config): Promise<LoadedPlugins> =>
  Promise.all(plugins.filter((plugin) => plugin.isEnabled(settings)).map((plugin) => plugin.load()));

/** Returns the kinds of servers: of the core, and of the plugins. */
export const sourcesOf = (loaded: LoadedPlugins): readonly RecordSource[] => [
  HANDLE_SERVER,
  ...loaded.flatMap(({ sources = [] }) => sources),
];

/** Starts the plugins, and adds their functions to the hooks. */
export function startPlugins(loaded: LoadedPlugins, host: Host, settings: Config) {
  const started = loaded.map((plugin) => {
    const { handlers, adminHandlers, admin, listeners, ...functions } = plugin.start?.(host, settings) ?? {};
    for (const [name, take] of Object.entries(functions))
      if (take !== undefined) (host.hooks[name as keyof Hooks] as unknown[]).push(take);
    return { handlers, adminHandlers, admin, listeners };
  });
  return {
    handlers: started.flatMap(({ handlers = [] }) => handlers),
    adminHandlers: Object.assign({}, ...started.map(({ adminHandlers }) => adminHandlers)) as AdminHandlers,
    admin: started.find(({ admin }) => admin !== undefined)?.admin,
    listeners: started.flatMap(({ listeners = [] }) => listeners),
  };
}
