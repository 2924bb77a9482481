// The configuration: the sections of the core and of every plugin, whether it is on or off.
import type { Rule } from '../config/fields.js';
import type { ConfigKey } from '../config/keys.js';
import { type ConfigSources, type StartConfig, createConfigLoader } from '../config/load.js';
import { type Config, SECTIONS, rules } from '../config/schema.js';
import { startProblems } from '../config/start-problems.js';
import { PLUGINS, type PluginSettings } from './plugins.js';

const SERVER_KINDS = ['handle-server', ...PLUGINS.flatMap(({ serverKinds = [] }) => serverKinds), 'none'];

const kindRules = ({ upstreams }: Config): Rule[] =>
  upstreams.map(({ kind }, at) => [
    !SERVER_KINDS.includes(kind),
    `upstreams.${at}.kind`,
    `give one of ${SERVER_KINDS.join(', ')}`,
  ]);

const loader = createConfigLoader<PluginSettings>([
  { sections: SECTIONS, rules, startProblems },
  { rules: kindRules },
  ...PLUGINS,
]);

export const configKeys: () => readonly ConfigKey[] = loader.configKeys;

/** Loads the configuration; the keys of plugins are not in its type. @throws ConfigError that lists every problem */
export const loadConfig: (sources: ConfigSources) => Config = loader.loadConfig;

/** @internal The same, for `serve`, `check-config` and reloads. @throws ConfigError that lists every problem */
export const loadStartConfig: (sources: ConfigSources) => StartConfig<PluginSettings> =
  loader.loadStartConfig;
