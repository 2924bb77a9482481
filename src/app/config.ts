// The configuration: the sections of the core and of every plugin, whether it is on or off.
import type { ConfigKey } from '../config/keys.js';
import { type ConfigSources, type StartConfig, createConfigLoader } from '../config/load.js';
import { type Config, SECTIONS, rules } from '../config/schema.js';
import { startProblems } from '../config/start-problems.js';
import { PLUGINS, type PluginSettings } from './plugins.js';

const loader = createConfigLoader<PluginSettings>([{ sections: SECTIONS, rules, startProblems }, ...PLUGINS]);

export const configKeys: () => readonly ConfigKey[] = loader.configKeys;

/** Loads the configuration; the keys of plugins are not in its type. @throws ConfigError that lists every problem */
export const loadConfig: (sources: ConfigSources) => Config = loader.loadConfig;

/** @internal The same, for `serve`, `check-config` and reloads. @throws ConfigError that lists every problem */
export const loadStartConfig: (sources: ConfigSources) => StartConfig<PluginSettings> =
  loader.loadStartConfig;
