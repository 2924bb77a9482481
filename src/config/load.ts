// Reads the configuration: the defaults, over them the YAML file named by CONFIG, over it the environment.
import { LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { configKeys, type ConfigKey } from './keys.js';
import { shownValue } from './mask.js';
import { configSchema, type Config } from './schema.js';
import { suggestKey } from './suggest.js';
import { isTree, valueAt, withoutNulls, withValue } from './tree.js';

export interface ConfigSources {
  /** Usually `process.env`. Unknown variables and empty ones are passed over. */
  env: Readonly<Record<string, string | undefined>>;
  /** Gives the text of a file. */
  readFile: (path: string) => string;
}

/** What was given, before the schema has seen it. */
interface Given {
  tree: unknown;
  file: string | undefined;
  variables: readonly ConfigKey[];
}

/**
 * @example loadConfig({ env: process.env, readFile: (path) => readFileSync(path, 'utf8') })
 * @throws ConfigError that lists every problem
 */
export function loadConfig(sources: ConfigSources): Config {
  const given = givenBy(sources);
  const parsed = configSchema.safeParse(given.tree);
  if (parsed.success) return parsed.data;
  throw new ConfigError(parsed.error.issues.flatMap((issue) => problemsOf(issue, given)));
}

function givenBy({ env, readFile }: ConfigSources): Given {
  const file = env['CONFIG']?.trim() === '' ? undefined : env['CONFIG'];
  const variables = configKeys().filter(({ variable }) => (env[variable] ?? '').trim() !== '');
  const tree = variables.reduce<unknown>(
    (soFar, { key, variable }) => withValue(soFar, key.split('.'), env[variable]),
    file === undefined ? {} : readTree(file, readFile),
  );
  return { tree, file, variables };
}

export interface Explained {
  key: string;
  /** The value as it was written, secrets masked. */
  shown: string;
  /** `variable PORT`, `file /etc/proxy.yaml` or `default`. */
  source: string;
}

/**
 * Every key in effect and where its value comes from.
 *
 * @throws ConfigError that lists every problem
 */
export function explainConfig(sources: ConfigSources): Explained[] {
  loadConfig(sources);
  const given = givenBy(sources);
  return configKeys().map(({ key, byDefault }) => ({
    key,
    shown: shownOr(key, valueAt(given.tree, key) ?? byDefault),
    source: sourceOf(key, given),
  }));
}

export interface ShownConfig {
  config: Config;
  /** Every value as it was written, secrets masked. */
  shown: Record<string, string>;
}

/**
 * The configuration together with what may be said of it.
 *
 * @throws ConfigError that lists every problem
 */
export function loadShown({ env, readFile }: ConfigSources): ShownConfig {
  const texts = new Map<string, string>();
  // Read once: it may be written this moment.
  const readOnce = (path: string): string => {
    const text = texts.get(path) ?? readFile(path);
    texts.set(path, text);
    return text;
  };
  const sources = { env, readFile: readOnce };
  const shown = explainConfig(sources).map((one): [string, string] => [one.key, one.shown]);
  return { config: loadConfig(sources), shown: Object.fromEntries(shown) };
}

const shownOr = (key: string, value: unknown): string => (value === null ? 'none' : shownValue(key, value));

function readTree(file: string, readFile: (path: string) => string): unknown {
  const attempt = <T>(doing: string, work: () => T): T => {
    try {
      return work();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConfigError([{ source: `file ${file}`, text: `${doing}: ${reason}` }]);
    }
  };
  const text = attempt('cannot be read', () => readFile(file));
  const tree = attempt('is not YAML', () => parseYaml(text));
  if (isTree(tree)) return tree;
  throw new ConfigError([{ source: `file ${file}`, text: 'give a mapping of keys' }]);
}

function parseYaml(text: string): unknown {
  const lines = new LineCounter();
  // Pretty errors would quote the line, and with it perhaps a password.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken) throw new SyntaxError(`line ${lines.linePos(broken.pos[0]).line}, ${broken.message}`);
  return withoutNulls(document.toJS()) ?? {};
}

function problemsOf(issue: z.core.$ZodIssue, given: Given): ConfigProblem[] {
  const key = issue.path.join('.');
  if (issue.code !== 'unrecognized_keys') return [problemAt(key, issue.message, given)];
  const known = configKeys().flatMap((entry) => [entry.key, ...sectionsOf(entry.key)]);
  return issue.keys.map((name) => {
    const unknown = key === '' ? name : `${key}.${name}`;
    const meant = suggestKey(unknown, known);
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    return { key: unknown, source: `file ${given.file ?? ''}`, text: `there is no such key${hint}` };
  });
}

/** `cache` and `cache.found` of `cache.found.maxTtl`. */
function sectionsOf(key: string): string[] {
  const names = key.split('.');
  return names.slice(1).map((_, at) => names.slice(0, at + 1).join('.'));
}

function problemAt(key: string, message: string, given: Given): ConfigProblem {
  const known = configKeys().find((entry) => entry.key === key);
  const source = sourceOf(key, given);
  if (known === undefined) return { key, source, text: 'this is a section; give a mapping of keys' };
  const value = valueAt(given.tree, key) ?? known.byDefault;
  return { key, source, text: `${shownValue(key, value)} is not allowed; ${message}` };
}

function sourceOf(key: string, { tree, file, variables }: Given): string {
  const fromVariable = variables.find((entry) => entry.key === key);
  if (fromVariable) return `variable ${fromVariable.variable}`;
  const isInFile = file !== undefined && valueAt(tree, key) !== undefined;
  return isInFile ? `file ${file}` : 'default';
}
