// All configuration keys with variable, default and description, and access to values by dotted key.
import { z } from 'zod';
import { nameWithUnit } from './fields.js';
import { configSchema } from './schema.js';

export interface ConfigKey {
  /** Path in the YAML file, such as `cache.found.maxTtl`. */
  key: string;
  /** `key`, split at its dots. */
  path: readonly string[];
  /** Path in the parsed configuration, such as `['cache', 'found', 'maxTtlMs']`. */
  parsedPath: readonly string[];
  /** Environment variable of the key, such as `CACHE_FOUND_MAX_TTL`. */
  variable: string;
  /** The default as written in the file; null for "none". */
  byDefault: string | number | boolean | null;
  description: string;
  /** Whether SIGHUP applies a new value without a restart. */
  isReloadable: boolean;
  /** Whether the value is a list or a mapping; then the variable holds it as JSON or YAML. */
  isStructured: boolean;
}

/** Variables without the name of their section, on which scripts and containers rely. */
const SHORT_VARIABLES: Readonly<Record<string, string>> = { 'server.host': 'HOST', 'server.port': 'PORT' };

let keys: readonly ConfigKey[] | undefined;

/** Every key, in the order of the schema. */
export const configKeys = (): readonly ConfigKey[] =>
  (keys ??= keysOf(configSchema, { path: [], parsedPath: [], isReloadable: false }));

/** The rows of the table of keys in config/README.md. */
export function configRows(): string[] {
  return configKeys().map(({ key, variable, byDefault, description }) => {
    const shown = byDefault === null ? 'none' : `\`${byDefault}\``;
    return `| \`${key}\` | \`${variable}\` | ${shown} | ${description} |`;
  });
}

interface Section {
  path: readonly string[];
  parsedPath: readonly string[];
  /** Inherited by all keys of the section. */
  isReloadable: boolean;
}

function keysOf(schema: unknown, above: Section): ConfigKey[] {
  const isReloadable = above.isReloadable || isMarked(schema, 'reloadable');
  const keys = keysOfSection(schema);
  if (keys === undefined) return [keyOf(schema, { ...above, isReloadable })];
  return Object.entries(keys).flatMap(([name, child]) => {
    const parsedPath = [...above.parsedPath, child instanceof z.ZodType ? nameWithUnit(name, child) : name];
    return keysOf(child, { path: [...above.path, name], parsedPath, isReloadable });
  });
}

/** The keys of a section; undefined for a single key. */
function keysOfSection(schema: unknown): Readonly<Record<string, unknown>> | undefined {
  const inner = schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
  const mapping = inner instanceof z.ZodPipe ? inner.in : inner;
  return mapping instanceof z.ZodObject ? mapping.shape : undefined;
}

const isMarked = (schema: unknown, mark: 'reloadable' | 'structured'): boolean =>
  schema instanceof z.ZodType && schema.meta()?.[mark] === true;

function keyOf(schema: unknown, { path, parsedPath, isReloadable }: Section): ConfigKey {
  const key = path.join('.');
  if (!(schema instanceof z.ZodType)) throw new TypeError(`${key} is not a schema`);
  const description = schema.description ?? '';
  const isStructured = isMarked(schema, 'structured');
  const byDefault = defaultOf(schema, key);
  return {
    key,
    path,
    parsedPath,
    variable: variableOf(key),
    byDefault,
    description,
    isReloadable,
    isStructured,
  };
}

/** The default as written; null for optional keys and for lists that are empty by default. */
function defaultOf(schema: z.ZodType, key: string): ConfigKey['byDefault'] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return null;
  if (!(schema instanceof z.ZodPrefault)) throw new TypeError(`${key} has no default in the schema`);
  return schema.def.defaultValue as ConfigKey['byDefault'];
}

/** The variable of a key, or the start of the variables of a section. */
export const variableOf = (key: string): string => SHORT_VARIABLES[key] ?? longVariableOf(key);

/** The variable by the full path: `SERVER_PORT` for `server.port`, whose variable is `PORT`. */
export const longVariableOf = (key: string): string =>
  key.replace(/[A-Z]/g, '_$&').replaceAll('.', '_').toUpperCase();

/** True for a mapping of keys; false for lists, strings and everything else. */
export function isTree(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path such as `['cache', 'found', 'maxTtl']`. */
export const valueAt = (tree: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (isTree(at) && Object.hasOwn(at, name) ? at[name] : undefined), tree);

/** A copy with one value set. A string or list in place of a section is kept, so that validation reports it. */
export function withValue(tree: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (tree !== undefined && !isTree(tree)) return tree;
  return { ...tree, [name]: withValue(tree?.[name], rest, value) };
}

/** A copy without the keys that have no value (`url:`): like empty variables, they set nothing. */
export function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (!isTree(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutNulls(inner)]));
}
