// The configuration: the sections of the core and of every plugin, whether it is on or off.
import { createConfigLoader } from '../config/load.js';
import { SECTIONS, rules } from '../config/schema.js';
import { startProblems } from '../config/start-problems.js';
import { PLUGINS, type PluginSettings } from './plugins.js';

export const { configKeys, loadConfig, loadStartConfig } = createConfigLoader<PluginSettings>([
  { sections: SECTIONS, rules, startProblems },
  ...PLUGINS,
]);
