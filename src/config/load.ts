// Loads the configuration (environment variables over the YAML file named by CONFIG over defaults) and reports every problem.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import type { z } from 'zod';
import { parseUrl } from './addresses.js';
import { configKeys, type ConfigKey, isTree, valueAt, withoutNulls, withValue } from './keys.js';
import { configSchema, type Config } from './schema.js';
import { INHERITED_KEYS } from './schema-upstream.js';
import { startProblems } from './start-problems.js';
import { removedVariables, successorOf, unknownVariables } from './variables.js';

/** Loads the package on first use, because a start with plain variables does not need it. */
const yaml = (): typeof Yaml => createRequire(import.meta.url)('yaml') as typeof Yaml;

interface ConfigProblem {
  /** Undefined when the file itself is the problem. */
  key?: string;
  /** Source of the value: `variable PORT`, `file /etc/proxy.yaml` or `default`. */
  source: string;
  text: string;
}

export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(['Invalid configuration:', ...problems.map(line)].join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

const line = ({ key, source, text }: ConfigProblem): string =>
  key === undefined ? `  ${source}: ${text}` : `  ${key} (${source}): ${text}`;

export interface ConfigSources {
  /** Usually `process.env`. Unknown variables are ignored, and so are empty ones unless the file sets their key. */
  env: Readonly<Record<string, string | undefined>>;
  /** Returns the text of a file. */
  readFile: (path: string) => string;
}

/** The environment and files of this process. `file` takes precedence over the variable `CONFIG`. */
export const processSources = (file?: string): ConfigSources => ({
  env: { ...process.env, ...(file !== undefined && { CONFIG: file }) },
  readFile: (path) => readFileSync(path, 'utf8'),
});

/** The values of file and environment before validation. */
interface Given {
  tree: unknown;
  file: string | undefined;
  variables: readonly ConfigKey[];
  /** Rejected variables: empty ones whose key is set in the file (the intent is unclear), and those of removed keys. */
  mistaken: readonly ConfigProblem[];
}

/**
 * @example loadConfig({ env: process.env, readFile: (path) => readFileSync(path, 'utf8') })
 * @throws ConfigError that lists every problem
 */
export const loadConfig = (sources: ConfigSources): Config => validate(readGiven(sources));

export interface ExplainedKey {
  key: string;
  /** The value as written, with secrets masked. */
  shown: string;
  /** Source of the value: `variable PORT`, `file /etc/proxy.yaml` or `default`. */
  source: string;
}

export interface StartConfig {
  config: Config;
  /** Every key. */
  keys: ExplainedKey[];
  /** Variables that begin like ours but set no key: a start ignores them, `check-config` rejects them. */
  ignored: ConfigProblem[];
}

/**
 * Loads and validates the configuration of a start. `serve`, `check-config` and a reload all use this function.
 *
 * @throws ConfigError that lists every problem
 */
export function loadStartConfig(sources: ConfigSources): StartConfig {
  const given = readGiven(sources);
  const config = validate(given);
  const problems = startProblems(config, sources.readFile);
  if (problems.length === 0) return { config, keys: explain(given), ignored: unknownVariables(sources.env) };
  throw new ConfigError(problems.map(({ key, text }) => ({ key, source: sourceOf(key, given), text })));
}

const explain = (given: Given): ExplainedKey[] =>
  configKeys().map(({ key, path, byDefault }) => {
    const value = valueAt(given.tree, path) ?? byDefault;
    return { key, shown: value === null ? 'none' : maskValue(key, value), source: sourceOf(key, given) };
  });

function validate(given: Given): Config {
  // The schema runs once per load: generating code for it takes longer than interpreting it.
  const parsed = configSchema.safeParse(withInheritedKeys(given.tree), { jitless: true });
  if (parsed.success && given.mistaken.length === 0) return parsed.data;
  const issues = parsed.error?.issues ?? [];
  throw new ConfigError([...given.mistaken, ...issues.flatMap((issue) => problemsOf(issue, given))]);
}

/** The given values, with the keys of `upstream` as defaults in each server of `upstreams`. */
function withInheritedKeys(tree: unknown): unknown {
  if (!isTree(tree) || !Array.isArray(tree['upstreams'])) return tree;
  const { upstream } = tree;
  const entries = isTree(upstream) ? Object.entries(upstream) : [];
  const inherited = Object.fromEntries(entries.filter(([key]) => INHERITED_KEYS.includes(key)));
  const { breaker } = inherited;
  const inherit = (server: unknown): unknown => {
    if (!isTree(server)) return server;
    const ownBreaker =
      isTree(breaker) && isTree(server['breaker']) ? { ...breaker, ...server['breaker'] } : undefined;
    return { ...inherited, ...server, ...(ownBreaker && { breaker: ownBreaker }) };
  };
  return { ...tree, upstreams: tree['upstreams'].map(inherit) };
}

function readGiven({ env, readFile }: ConfigSources): Given {
  const file = env['CONFIG']?.trim() === '' ? undefined : env['CONFIG'];
  const inFile = file === undefined ? {} : readTree(file, readFile);
  const isEmpty = ({ variable }: ConfigKey): boolean => env[variable]?.trim() === '';
  const variables = configKeys().filter((key) => env[key.variable] !== undefined && !isEmpty(key));
  const tree = variables.reduce<unknown>(
    (soFar, { path, variable, isStructured }) =>
      withValue(soFar, path, isStructured ? parseVariable(env[variable]) : env[variable]),
    inFile,
  );
  const hidden = configKeys()
    .filter((key) => isEmpty(key) && valueAt(inFile, key.path) !== undefined)
    .map(({ key, variable }) => ({
      key,
      source: `variable ${variable}`,
      text: `the variable is empty, but file ${file} has a value; unset the variable, or give it a value`,
    }));
  return { tree, file, variables, mistaken: [...hidden, ...removedVariables(env)] };
}

/** Parses YAML, which includes JSON. The schema reports text that is neither. */
function parseVariable(text = ''): unknown {
  try {
    return parseYaml(text);
  } catch {
    return text;
  }
}

function readTree(file: string, readFile: (path: string) => string): unknown {
  const attempt = <T>(failure: string, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConfigError([{ source: `file ${file}`, text: `${failure}: ${reason}` }]);
    }
  };
  const text = attempt('cannot be read', () => readFile(file));
  const tree = attempt('invalid YAML', () => parseYaml(text));
  if (isTree(tree)) return tree;
  throw new ConfigError([{ source: `file ${file}`, text: 'give a mapping of keys' }]);
}

function parseYaml(text: string): unknown {
  const { LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  // Pretty errors would quote the line, which may contain a password.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    // A prefix as a key, such as 10.1000, must not become a number.
    stringKeys: true,
  });
  const [broken] = document.errors;
  if (broken) throw new SyntaxError(`line ${lines.linePos(broken.pos[0]).line}, ${broken.message}`);
  return withoutNulls(document.toJS()) ?? {};
}

function problemsOf(issue: z.core.$ZodIssue, given: Given): ConfigProblem[] {
  const key = issue.path.join('.');
  if (issue.code !== 'unrecognized_keys') return [problemAt(key, issue.message, given)];
  return issue.keys.map((name) => {
    const unknown = key === '' ? name : `${key}.${name}`;
    const text = successorOf(unknown) ?? `unknown key${hintFor(unknown)}`;
    return { key: unknown, source: `file ${given.file ?? ''}`, text };
  });
}

/** Suggests the key of that name in another section or in other case, or else lists the keys of the section. */
function hintFor(unknown: string): string {
  const known = [
    ...new Set(configKeys().flatMap(({ path }) => path.map((_, at) => path.slice(0, at + 1).join('.')))),
  ];
  const sectionOf = (key: string): string => key.slice(0, key.lastIndexOf('.') + 1);
  const nameOf = (key: string): string => key.slice(key.lastIndexOf('.') + 1);
  const isSame = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
  const namesakes = known.filter((key) => isSame(nameOf(key), nameOf(unknown)));
  const meant =
    namesakes.find((key) => isSame(key, unknown)) ?? (namesakes.length === 1 ? namesakes[0] : undefined);
  if (meant !== undefined) return `; did you mean ${meant}?`;
  const siblings = known.filter((key) => sectionOf(key) === sectionOf(unknown)).map(nameOf);
  return siblings.length === 0 ? '' : `; known: ${siblings.join(', ')}`;
}

function problemAt(key: string, message: string, given: Given): ConfigProblem {
  const known = configKeys().find((entry) => entry.key === key || key.startsWith(`${entry.key}.`));
  const source = sourceOf(known?.key ?? key, given);
  if (known === undefined) return { key, source, text: 'this is a section: give a mapping of keys' };
  if (known.key !== key) return { key, source, text: message };
  const value = valueAt(given.tree, known.path) ?? known.byDefault;
  return { key, source, text: `${maskValue(key, value)} is not allowed; ${message}` };
}

function sourceOf(key: string, { tree, file, variables }: Given): string {
  const fromVariable = variables.find((entry) => entry.key === key);
  if (fromVariable) return `variable ${fromVariable.variable}`;
  const isInFile = file !== undefined && valueAt(tree, key.split('.')) !== undefined;
  return isInFile ? `file ${file}` : 'default';
}

const MAX_SHOWN = 80;

/** A value without secrets. Invalid URLs are hidden entirely, because they may be bare passwords. */
function maskValue(key: string, value: unknown): string {
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'a mapping';
  if (typeof value !== 'string') return JSON.stringify(value);
  if (key.endsWith('.url')) return parseUrl(value) ? `"${maskUrl(value)}"` : '(hidden)';
  // Lists of Redis nodes may contain a password anywhere.
  if (['admin.token', 'redis.cluster', 'redis.sentinels', 'changes.webhook.secret'].includes(key))
    return '(hidden)';
  return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value);
}

/** Replaces the credentials and the query of a URL. */
function maskUrl(text: string): string {
  // A password may hold a question mark.
  const masked = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1***@');
  const query = masked.search(/[?#]/);
  return query === -1 ? masked : `${masked.slice(0, query)}?***`;
}
