// Replaces constants of the configuration, which no key sets, so that a test soon reaches a limit or a timeout.
import type { PluginSettings } from '../../src/app/plugins.js';
import { replaceFixed } from './replace-fixed.js';

type Part<T> = { readonly [Name in keyof T]?: T[Name] extends object ? Part<T[Name]> : T[Name] };

/** Constants by their place in the parsed configuration. */
export type FixedValues = Part<PluginSettings>;

/** Name under which the constants are among the variables of a test's proxy. The product does not read it. */
export const FIXED_VALUES = 'FIXED_VALUES';

/** Returns constants to spread into the variables of a test's proxy, in this process or built. */
export const fixed = (values: FixedValues): Record<string, string> => ({
  [FIXED_VALUES]: JSON.stringify(values),
});

/** Replaces the constants that the variables of a test's proxy name. */
export function withFixed(
  config: PluginSettings,
  env: Readonly<Record<string, string | undefined>>,
): PluginSettings {
  const values = env[FIXED_VALUES];
  return values === undefined
    ? config
    : (replaceFixed(config, JSON.parse(values) as FixedValues) as PluginSettings);
}
