// Lists all configuration keys with variable, default and description, and accesses values by path.
import { z } from 'zod';
import { marksOf, nameWithUnit } from './fields.js';

export interface ConfigKey {
  /** Path in the YAML file, for example `cache.found.maxTtl`. */
  key: string;
  /** `key`, split at its dots. */
  path: readonly string[];
  /** Path in the parsed configuration, for example `['cache', 'found', 'maxTtlMs']`. */
  parsedPath: readonly string[];
  /** Environment variable for the key, for example `CACHE_FOUND_MAX_TTL`. */
  variable: string;
  /** The default as written in the file; null if there is none. */
  byDefault: string | number | boolean | null;
  description: string;
  /** Whether SIGHUP applies a new value without a restart. */
  isReloadable: boolean;
  /** Whether the value is a list or mapping; its variable then contains JSON or YAML. */
  isStructured: boolean;
  /** Whether the value is never printed. */
  isSecret: boolean;
}

export interface ConfigProblem {
  /** Undefined if the file itself, or a variable of no key, is the problem. */
  key?: string;
  /** Source of the value: `variable PORT`, `file /etc/proxy.yaml` or `default`. */
  source: string;
  text: string;
}

/** Variables without a section name, on which scripts and containers rely. */
const SHORT_VARIABLES: Readonly<Record<string, string>> = { 'server.host': 'HOST', 'server.port': 'PORT' };

/** Returns every key of a schema, in its order. All keys of a reloadable section are reloadable. */
export function keysIn(
  schema: z.ZodType,
  path: readonly string[] = [],
  isReloadableSection = false,
): readonly ConfigKey[] {
  const marks = marksOf(schema);
  const isReloadable = isReloadableSection || marks.reloadable === true;
  const keys = keysOfSection(schema);
  if (keys !== undefined)
    return Object.entries(keys).flatMap(([name, child]) => keysIn(child, [...path, name], isReloadable));
  const key = path.join('.');
  return [
    {
      key,
      path,
      parsedPath: [...path.slice(0, -1), nameWithUnit(path.at(-1) ?? '', marks)],
      variable: variableOf(key),
      byDefault: defaultOf(schema, key),
      description: marks.description ?? '',
      isReloadable,
      isStructured: marks.structured === true,
      isSecret: marks.secret === true,
    },
  ];
}

/** Returns a section's keys; undefined for a single key. */
function keysOfSection(schema: z.ZodType): Readonly<Record<string, z.ZodType>> | undefined {
  const inner = schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
  const mapping = inner instanceof z.ZodPipe ? inner.in : inner;
  return mapping instanceof z.ZodObject ? mapping.shape : undefined;
}

/** Returns the default as written in the file; null for optional keys and lists that default to empty. */
function defaultOf(schema: z.ZodType, key: string): ConfigKey['byDefault'] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return null;
  if (!(schema instanceof z.ZodPrefault)) throw new TypeError(`${key} has no default in the schema`);
  return schema.def.defaultValue as ConfigKey['byDefault'];
}

/** Returns a key's variable, or the prefix of a section's variables. */
export const variableOf = (key: string): string => SHORT_VARIABLES[key] ?? longVariableOf(key);

/** Returns the variable for the full path: `SERVER_PORT` for `server.port`, which `PORT` sets. */
export const longVariableOf = (key: string): string =>
  key.replace(/[A-Z]/g, '_$&').replaceAll('.', '_').toUpperCase();

export function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value at a path, for example `['cache', 'found', 'maxTtl']`. */
export const valueAt = (tree: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (isTree(at) && Object.hasOwn(at, name) ? at[name] : undefined), tree);

/** Returns a copy with one value set. Keeps a text or list in place of a section, for validation. */
export function withValue(tree: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (tree !== undefined && !isTree(tree)) return tree;
  return { ...tree, [name]: withValue(tree?.[name], rest, value) };
}
