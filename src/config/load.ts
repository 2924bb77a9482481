// Loads the configuration: environment variables before the YAML file named by CONFIG before defaults.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import type { z } from 'zod';
import { tryDecode } from '../handle/bytes.js';
import { errorText } from '../errors.js';
import { parseUrl } from './addresses.js';
import { type Blame, type ConfigPart, MAPPING, joinSections } from './fields.js';
import { readRegularText } from './given-files.js';
import { type ConfigKey, type ConfigProblem, isTree, keysIn, valueAt, withValue } from './keys.js';
import { outgoingProxyProblems } from './outgoing-proxy.js';
import type { Config } from './schema.js';
import { INHERITED_KEYS } from './schema-upstream.js';
import { removedVariables, successorOf, unknownVariables } from './variables.js';

/** Loads the yaml package on first use, because a configuration from plain variables does not need it. */
const yaml = (): typeof Yaml => createRequire(import.meta.url)('yaml') as typeof Yaml;

export class ConfigError extends Error {
  constructor(readonly problems: readonly ConfigProblem[]) {
    super(['Invalid configuration:', ...problems.map(line)].join('\n'));
    this.name = 'ConfigError';
  }
}

const line = ({ key, source, text }: ConfigProblem): string =>
  key === undefined ? `  ${source}: ${text}` : `  ${key} (${source}): ${text}`;

export interface ConfigSources {
  /** Usually `process.env`. An empty variable is an error if the file sets its key, else it is ignored. */
  env: NodeJS.ProcessEnv;
  readFile: (path: string) => string;
  isReload?: boolean;
}

/** Returns this process's environment and files. `file` takes precedence over the variable `CONFIG`. */
export function processSources(file = process.env['CONFIG']): ConfigSources {
  return {
    env: { ...process.env, CONFIG: file },
    // A start may read its configuration from a pipe, once; the other files are read again.
    readFile: (path) => (path === file ? readFileSync(path, 'utf8') : readRegularText(path)),
  };
}

interface Given {
  keys: readonly ConfigKey[];
  tree: unknown;
  file: string | undefined;
  /** The values of the file as they are written there. */
  document: Yaml.Document | undefined;
  variables: readonly ConfigKey[];
  /** Empty variables for keys of the file, variables of removed keys, unusable outgoing proxies. */
  mistaken: readonly ConfigProblem[];
}

export interface ExplainedKey {
  key: string;
  /** The configured value, with secrets masked. */
  shown: string;
  /** Source of the value: `variable PORT`, `file /etc/proxy.yaml` or `default`. */
  source: string;
}

export interface StartConfig<Settings extends Config = Config> {
  config: Settings;
  keys: ExplainedKey[];
  /** Variables with the prefix of a section but no key: ignored at a start, rejected by `check-config`. */
  ignored: ConfigProblem[];
  /** At a reload: what is wrong with keys that only a start applies, such as a certificate that has expired since. */
  atNextStart: ConfigProblem[];
}

export function createConfigLoader<Settings extends Config>(parts: readonly ConfigPart<Settings>[]) {
  const schema = joinSections(parts);
  const keys = keysIn(schema);
  return {
    configKeys: () => keys,
    /** @throws ConfigError that lists every problem */
    loadConfig: (sources: ConfigSources): Settings => validate(readGiven(sources, keys), schema),
    /** Also checks what the schema cannot, such as files. @throws ConfigError that lists every problem */
    loadStartConfig: (sources: ConfigSources): StartConfig<Settings> => {
      const given = readGiven(sources, keys);
      const config = validate(given, schema);
      const ignored = unknownVariables(sources.env, keys);
      const all = parts
        .flatMap((part) => part.startProblems?.(config, sources.readFile, sources.isReload ?? false) ?? [])
        .flatMap(([key, text]) => (text === undefined ? [] : [{ key, source: sourceOf(key, given), text }]));
      const isNow = (key: string): boolean =>
        sources.isReload !== true || keys.some((known) => known.key === key && known.isReloadable);
      const problems = all.filter(({ key }) => isNow(key));
      // A misspelled variable may be the reason why a key has no value.
      if (problems.length > 0) throw new ConfigError([...ignored, ...problems]);
      const atNextStart = all.filter(({ key }) => !isNow(key));
      return { config, keys: explainKeys(given), ignored, atNextStart };
    },
  };
}

const explainKeys = (given: Given): ExplainedKey[] =>
  given.keys.map((known) => {
    const { key, path, byDefault } = known;
    const value = valueAt(given.tree, path) ?? byDefault;
    return { key, shown: maskValue(known, value), source: sourceOf(key, given) };
  });

function validate<Settings>(given: Given, schema: z.ZodType<Settings>): Settings {
  // The schema runs once per load, so interpreting it is faster than generating code for it.
  const parsed = schema.safeParse(withInheritedKeys(given.tree), { jitless: true });
  if (parsed.success && given.mistaken.length === 0) return parsed.data;
  const issues = parsed.error?.issues ?? [];
  throw new ConfigError([...given.mistaken, ...issues.flatMap((issue) => problemsOf(issue, given))]);
}

/** Adds the keys of `upstream` as defaults to each server in `upstreams`. */
function withInheritedKeys(tree: unknown): unknown {
  if (!isTree(tree) || !Array.isArray(tree['upstreams'])) return tree;
  const { upstream } = tree;
  const entries = isTree(upstream) ? Object.entries(upstream) : [];
  const inherited = Object.fromEntries(entries.filter(([key]) => INHERITED_KEYS.includes(key)));
  const inherit = (server: unknown): unknown => (isTree(server) ? { ...inherited, ...server } : server);
  return { ...tree, upstreams: tree['upstreams'].map(inherit) };
}

function readGiven({ env, readFile }: ConfigSources, keys: readonly ConfigKey[]): Given {
  const file = env['CONFIG']?.trim() === '' ? undefined : env['CONFIG'];
  const { tree: inFile, document } = file === undefined ? { tree: {} } : readTree(file, readFile);
  const isEmpty = ({ variable }: ConfigKey): boolean => env[variable]?.trim() === '';
  const variables = keys.filter((key) => env[key.variable] !== undefined && !isEmpty(key));
  const tree = variables.reduce<unknown>(
    (soFar, { path, variable, isStructured }) =>
      withValue(soFar, path, isStructured ? parseVariable(env[variable]) : env[variable]),
    inFile,
  );
  const hidden = keys
    .filter((key) => isEmpty(key) && valueAt(inFile, key.path) !== undefined)
    .map(({ key, variable }) => ({
      key,
      source: `variable ${variable}`,
      text: `the variable is empty, but file ${file} has a value; unset the variable, or give it a value`,
    }));
  return {
    keys,
    tree,
    file,
    document,
    variables,
    mistaken: [...hidden, ...removedVariables(env), ...outgoingProxyProblems(env)],
  };
}

/** Parses YAML, which includes JSON. Returns any other text unchanged, so that the schema reports it. */
const parseVariable = (text = ''): unknown =>
  tryDecode((yamlText) => treeOf(parseYaml(yamlText)), text) ?? text;

function readTree(
  file: string,
  readFile: (path: string) => string,
): { tree: unknown; document?: Yaml.Document } {
  let text = 'cannot be read';
  try {
    const yamlText = readFile(file);
    text = 'invalid YAML';
    const document = parseYaml(yamlText);
    const tree = treeOf(document);
    // Only a comment may be in another encoding: a password would be another one.
    if (JSON.stringify(tree).includes('\uFFFD'))
      text = 'a value is not UTF-8, or has U+FFFD in its place: save the file in UTF-8';
    else if (isTree(tree)) return { tree, document };
    else text = MAPPING;
  } catch (error) {
    text += `: ${errorText(error)}`;
  }
  throw new ConfigError([{ source: `file ${file}`, text }]);
}

/** Maximum length of a YAML file (characters), because requests wait while a reload parses it. */
const MAX_YAML_CHARS = 1024 * 1024;

/** @throws SyntaxError with the line, or if the text is too long */
export function parseYaml(text: string): Yaml.Document {
  if (text.length > MAX_YAML_CHARS) throw new SyntaxError(`it has more than ${MAX_YAML_CHARS} characters`);
  const { LineCounter, parseDocument } = yaml();
  const lines = new LineCounter();
  // Pretty errors would quote the line, which could contain a password.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    // A prefix such as 10.1000 must not become a number.
    stringKeys: true,
    // The check of the library compares each key with all keys before it: 10 s for 20,000.
    uniqueKeys: false,
  });
  const [broken] = document.errors;
  if (broken) throw new SyntaxError(`line ${lines.linePos(broken.pos[0]).line}, ${broken.message}`);
  const repeated = repeatedKey(document);
  if (repeated?.range)
    throw new SyntaxError(`line ${lines.linePos(repeated.range[0]).line}, Map keys must be unique`);
  return document;
}

function repeatedKey(document: Yaml.Document): Yaml.Scalar | undefined {
  let repeated: Yaml.Scalar | undefined;
  yaml().visit(document, {
    Map(_key, { items }) {
      const keys = items.map(({ key }) => key as Yaml.Scalar);
      const names = new Set<unknown>();
      repeated ??= keys.find(({ value }) => names.size === names.add(value).size);
    },
  });
  return repeated;
}

/** Returns the values without keys that lack one (`url:`), because they set nothing, like empty variables. */
const treeOf = (document: Yaml.Document): unknown =>
  document.toJS({ reviver: (_key, value: unknown) => value ?? undefined }) ?? {};

/** Maximum reported unknown keys of a section: a file of another kind may have thousands, each of which needs a hint. */
const MAX_UNKNOWN = 100;

function problemsOf(issue: z.core.$ZodIssue, given: Given): ConfigProblem[] {
  const key = issue.path.join('.');
  if (issue.code !== 'unrecognized_keys') {
    const other = issue.code === 'custom' ? (issue.params?.['other'] as Blame | undefined) : undefined;
    const isOther = other !== undefined && sourceOf(key, given) === 'default';
    return [isOther ? problemAt(...other, given) : problemAt(key, issue.message, given)];
  }
  // The key whose value is a list or mapping with this name.
  const entryOf = knownKey(key, given);
  return issue.keys.slice(0, MAX_UNKNOWN).map((name) => {
    const unknown = key === '' ? name : `${key}.${name}`;
    const hint =
      entryOf === undefined ? hintFor(unknown, given.keys) : hintInEntry(name, issue.message.split(', '));
    return {
      key: unknown,
      source: entryOf === undefined ? `file ${given.file ?? ''}` : sourceOf(key, given),
      text: successorOf(unknown) ?? `unknown key${hint}`,
    };
  });
}

/** Suggests the same name in a different letter case, or else lists the names that an entry of a list may have. */
function hintInEntry(unknown: string, names: readonly string[]): string {
  const meant = names.find((name) => name.toLowerCase() === unknown.toLowerCase());
  return meant === undefined ? `; known: ${names.join(', ')}` : `; did you mean ${meant}?`;
}

/** Nests a dotted key or a variable, else suggests a similar name, else lists the keys of the section. */
function hintFor(unknown: string, keys: readonly ConfigKey[]): string {
  const known = [
    ...new Set(keys.flatMap(({ path }) => path.map((_, at) => path.slice(0, at + 1).join('.')))),
  ];
  const written = keys.find(({ variable }) => variable === unknown)?.key ?? unknown;
  if (known.includes(written))
    return `; in YAML write ${written.replaceAll('.', ': { ')}: …${' }'.repeat(written.split('.').length - 1)}`;
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

/** Returns the key of a problem, which may be in a list or mapping that is the value of the key. */
const knownKey = (at: string, { keys }: Given): ConfigKey | undefined =>
  keys.find(({ key }) => at === key || at.startsWith(`${key}.`));

function problemAt(key: string, message: string, given: Given): ConfigProblem {
  const known = knownKey(key, given);
  const source = sourceOf(key, given);
  if (known === undefined) return { key, source, text: `this is a section: ${MAPPING}` };
  const shown = invalidValue(key, known, given);
  return { key, source, text: shown === undefined ? message : `${shown} is not allowed; ${message}` };
}

/** Returns the invalid value; undefined for a list, a mapping, and text in one of them. */
function invalidValue(at: string, known: ConfigKey, given: Given): string | undefined {
  const isFromFile = sourceOf(known.key, given).startsWith('file ');
  const written = isFromFile && !known.isSecret ? writtenNumber(at, given) : undefined;
  if (written !== undefined) return written;
  const value = valueAt(given.tree, known.path) ?? known.byDefault;
  const isWhole = at === known.key && (value === null || typeof value !== 'object');
  return isWhole ? maskValue(known, value) : undefined;
}

/** Returns a number as it is written in the file, for example `20.500`; undefined for any other value. */
function writtenNumber(at: string, { document }: Given): string | undefined {
  const node = document?.getIn(at.split('.'), true);
  return yaml().isScalar(node) && typeof node.value === 'number' ? node.source : undefined;
}

function sourceOf(at: string, given: Given): string {
  const { tree, file, variables } = given;
  const known = knownKey(at, given);
  const key = known?.key ?? at;
  if (known !== undefined && variables.includes(known)) return `variable ${known.variable}`;
  const isInFile = file !== undefined && valueAt(tree, key.split('.')) !== undefined;
  return isInFile ? `file ${file}` : 'default';
}

const MAX_SHOWN = 80;

/** Masks secrets in a value. Hides invalid URLs entirely, because they may be bare passwords. */
function maskValue({ key, isSecret }: ConfigKey, value: unknown): string {
  if (value === null) return 'none';
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'a mapping';
  if (isSecret) return '(hidden)';
  return typeof value === 'string' ? maskText(key, value) : JSON.stringify(value);
}

function maskText(key: string, text: string): string {
  const isUrl = key.endsWith('.url');
  if (isUrl && !parseUrl(text)) return '(hidden)';
  // An address with a password may be in a key that allows none.
  const mayHavePassword = text.includes(':') && text.lastIndexOf('@') > text.indexOf(':');
  if (isUrl || mayHavePassword) return `"${maskUrl(text)}"`;
  return JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
}

function maskUrl(text: string): string {
  // Masks up to the last `@` first, because a password may contain a question mark.
  const masked = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1***@');
  const query = text.search(/[?#]/);
  if (query === -1) return masked;
  // That `@` may also be in the query, and the rest of a password follow it.
  if (query < text.lastIndexOf('@')) return masked.slice(0, masked.lastIndexOf('@'));
  return `${masked.slice(0, masked.search(/[?#]/))}?***`;
}
