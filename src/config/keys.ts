// The list of all configuration keys, read off the schema: variable, default and meaning of each.
import { z } from 'zod';
import { configSchema } from './schema.js';

export interface ConfigKey {
  /** Path in the YAML file, such as `cache.found.maxTtl`. */
  key: string;
  /** The environment variable that sets it, such as `CACHE_FOUND_MAX_TTL`. */
  variable: string;
  /** The default as one writes it in the file; null for "none". */
  byDefault: string | number | boolean | null;
  meaning: string;
  /** Whether a new value comes into effect without a restart. */
  isReloadable: boolean;
}

/** Contract with scripts and containers that set nothing else. */
const SHORT_VARIABLES: Readonly<Record<string, string>> = { 'server.host': 'HOST', 'server.port': 'PORT' };

/** Every key, in the order of the schema. */
export function configKeys(): ConfigKey[] {
  return keysOf(configSchema, { path: [], isReloadable: false });
}

/** The rows of the README's table of keys. */
export function configRows(): string[] {
  return configKeys().map(({ key, variable, byDefault, meaning }) => {
    const shown = byDefault === null ? 'none' : `\`${byDefault}\``;
    return `| \`${key}\` | \`${variable}\` | ${shown} | ${meaning} |`;
  });
}

interface Place {
  path: string[];
  /** What the section says holds for all its keys. */
  isReloadable: boolean;
}

function keysOf(schema: unknown, above: Place): ConfigKey[] {
  const isReloadable = above.isReloadable || saysReloadable(schema);
  const inner = schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
  if (!(inner instanceof z.ZodObject)) return [keyOf(schema, above.path.join('.'), isReloadable)];
  return Object.entries(inner.shape).flatMap(([name, child]) =>
    keysOf(child, { path: [...above.path, name], isReloadable }),
  );
}

const saysReloadable = (schema: unknown): boolean =>
  schema instanceof z.ZodType && schema.meta()?.['reloadable'] === true;

function keyOf(schema: unknown, key: string, isReloadable: boolean): ConfigKey {
  if (!(schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault)) {
    throw new TypeError(`${key} has no default in the schema`);
  }
  const byDefault = schema.def.defaultValue as ConfigKey['byDefault'];
  return { key, variable: variableOf(key), byDefault, meaning: schema.description ?? '', isReloadable };
}

const variableOf = (key: string): string =>
  SHORT_VARIABLES[key] ?? key.replace(/[A-Z]/g, '_$&').replaceAll('.', '_').toUpperCase();
