// Builds schemas for values, with errors that name what is allowed, and joins the sections of all owners.
import { z } from 'zod';
import { upperAscii } from '../handle/handle.js';

type Shape = Readonly<Record<string, z.ZodType>>;

type Unit = 'Ms' | 'Bytes';

/** Adds a unit: `timeout` becomes `timeoutMs`, `maxBodySize` becomes `maxBodyBytes`. */
type NameWithUnit<Name, Value> = Name extends string
  ? Value extends z.core.$brand<'Ms'>
    ? `${Name}Ms`
    : Name extends `${infer Stem}Size`
      ? `${Stem}Bytes`
      : Name
  : Name;

type WithUnits<T> = {
  [Name in keyof T as NameWithUnit<Name, T[Name]>]: T[Name] extends
    | z.core.$brand<'Ms'>
    | z.core.$brand<'Bytes'>
    ? number
    : T[Name];
};

/** Properties of a key that its schema states, besides the description and the default. */
interface Marks {
  unit?: Unit;
  /** Whether SIGHUP applies a new value without a restart. */
  reloadable?: boolean;
  /** Whether the value is never printed. */
  secret?: boolean;
  /** Whether the value is a list or mapping; its variable then contains JSON or YAML. */
  structured?: boolean;
  /** A constant, which no key sets. */
  fixed?: { value: unknown };
}

export const marksOf = (schema: z.ZodType): Marks & { description?: string | undefined } =>
  schema.meta() ?? {};

const mark = <T extends z.ZodType>(schema: T, marks: Marks): T => schema.meta({ ...marks });

export const nameWithUnit = (name: string, { unit }: Marks): string =>
  unit === 'Ms' ? `${name}Ms` : name.replace(/Size$/, 'Bytes');

/** Puts a constant among the parsed values of a section. No key sets it; tests replace it there. */
export const fixed = <T>(value: T): z.ZodType<T> => mark(z.custom<T>(), { fixed: { value } });

/** Error for any other value in place of a mapping. */
export const MAPPING = 'give a mapping of keys';

/** Returns the error of a mapping, which for an unknown key is the names of the known ones. */
export const mappingError =
  (names: readonly string[], error = MAPPING) =>
  ({ code }: { code?: string | undefined }): string =>
    code === 'unrecognized_keys' ? names.join(', ') : error;

/** Builds a mapping that rejects unknown keys. Parsed durations and sizes have their unit in the name. */
export const mapping = <T extends Shape>(shape: T) => {
  const keys: Record<string, z.ZodType> = {};
  const named: [name: string, withUnit: string][] = [];
  const constants: [name: string, value: unknown][] = [];
  for (const [name, schema] of Object.entries(shape)) {
    const marks = marksOf(schema);
    if (marks.fixed !== undefined) constants.push([name, marks.fixed.value]);
    else {
      keys[name] = schema;
      named.push([name, nameWithUnit(name, marks)]);
    }
  }
  return z.strictObject(keys as T, { error: mappingError(Object.keys(keys)) }).transform((given) => {
    const values: Readonly<Record<string, unknown>> = given;
    const parsedKeys = named.map(([name, withUnit]) => [withUnit, values[name]] as const);
    return Object.fromEntries([...parsedKeys, ...constants]) as WithUnits<z.output<z.ZodObject<T>>>;
  });
};

/** Builds a mapping that may be omitted. */
export const section = <T extends Shape>(keys: T) => mapping(keys).prefault({} as z.input<z.ZodObject<T>>);

/** Marks a key or section as reloadable: SIGHUP applies changes without a restart. */
export const reloadable = <T extends z.ZodType>(schema: T): T => mark(schema, { reloadable: true });

export const secret = <T extends z.ZodType>(schema: T): T => mark(schema, { secret: true });

interface AllowedRange<T> {
  min: T;
  max: T;
  byDefault: T;
}

interface Measure {
  kind: string;
  units: Readonly<Record<string, number>>;
  /** Units for a number without one, the likeliest first. */
  likely: readonly string[];
}

const DURATION: Measure = {
  kind: 'a duration',
  units: { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  likely: ['s', 'ms', 'm'],
};

const SIZE: Measure = {
  kind: 'a size',
  units: { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 },
  likely: ['B', 'KiB', 'MiB'],
};

/** Parses a duration with a unit (`60s`) to milliseconds. */
export const duration = (range: AllowedRange<string>) => measured('Ms', DURATION, range).brand<'Ms'>();

/** Parses a size with a unit (`8KiB`) to bytes. */
export const size = (range: AllowedRange<string>) => measured('Bytes', SIZE, range).brand<'Bytes'>();

function measured(unit: Unit, measure: Measure, { min, max, byDefault }: AllowedRange<string>) {
  const { kind, units, likely } = measure;
  const [lowest = 0, highest = 0] = [min, max].map((bound) => parseQuantity(bound, units));
  const read = (given: string): number | undefined => {
    const value = parseQuantity(given, units);
    return value !== undefined && value >= lowest && value <= highest ? value : undefined;
  };
  const errorFor = (given: unknown): string => {
    const meant = likely
      .map((symbol) => `${String(given)}${symbol}`)
      .find((text) => read(text) !== undefined);
    const hint = meant === undefined ? '' : `the unit is missing, such as ${meant}; `;
    return `${hint}give ${kind} with its unit (${Object.keys(units).join(', ')}) from ${min} to ${max}`;
  };
  return parsed(errorFor, read).prefault(byDefault).meta({ unit });
}

/** Builds a string schema whose parser, `read`, returns undefined for invalid input. */
const parsed = <T>(errorFor: (given: unknown) => string, read: (text: string) => T | undefined) =>
  z.string({ error: ({ input }) => errorFor(input) }).transform((text, context) => {
    const value = read(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: errorFor(text) });
    return z.NEVER;
  });

/** Also accepts a number as a string, because environment variables are strings. */
const numeric = <T extends z.ZodType>(pattern: RegExp, schema: T) =>
  z.preprocess((given) => (typeof given === 'string' && pattern.test(given) ? Number(given) : given), schema);

function integer(min: number, max: number) {
  const error = `give a whole number from ${min} to ${max}`;
  return numeric(/^-?\d+$/, z.int({ error }).min(min, { error }).max(max, { error }));
}

export const wholeNumber = ({ min, max, byDefault }: AllowedRange<number>) =>
  integer(min, max).prefault(byDefault);

/** Parses a fraction, for example 0.9. */
export function share({ min, max, byDefault }: AllowedRange<number>) {
  const error = `give a number from ${min} to ${max}`;
  const part = z.number({ error }).min(min, { error }).max(max, { error });
  return numeric(/^(?:\d+(?:\.\d+)?|\.\d+)$/, part).prefault(byDefault);
}

/** Parses the port of an optional listener, which is disabled by default. */
export const optionalPort = () => integer(0, 65_535).optional();

/** Parses `true` or `false`, as a boolean or a string. */
export function flag(byDefault: boolean) {
  const fromText = (given: unknown) => (given === 'true' ? true : given === 'false' ? false : given);
  return z.preprocess(fromText, z.boolean({ error: 'give true or false' })).prefault(byDefault);
}

export const word = <const T extends readonly string[]>(words: T): z.ZodEnum<z.core.util.ToEnum<T[number]>> =>
  z.enum(words, { error: `give one of ${words.join(', ')}` });

export const oneOf = <const T extends readonly string[]>(words: T, byDefault: T[number]) =>
  word(words).prefault(byDefault);

/** Error for text without quotes that YAML reads as another type, because it changes the text: `20.500` is 20.5. */
const unquoted = (given: unknown): string | undefined =>
  typeof given === 'number' || typeof given === 'boolean'
    ? `it is a ${typeof given} in YAML: put it in quotes`
    : undefined;

export function text({ allowed, pattern }: { allowed: string; pattern: RegExp }) {
  const error = `give ${allowed}`;
  return z.string({ error: ({ input }) => unquoted(input) ?? error }).regex(pattern, { error });
}

/** Paths that may be omitted. */
export const filePath = text({ allowed: 'the path of a file', pattern: /^[^\0\n]+$/ }).optional();
export const pemFile = text({ allowed: 'the path of a PEM file', pattern: /^[^\0\n]+$/ }).optional();
export const absoluteFilePath = text({
  allowed: 'the absolute path of a file',
  pattern: /^\/[^\0\n]*[^/\0\n]$/,
}).optional();

interface ReadText<T> {
  allowed: string;
  /** Returns undefined for invalid text. */
  read: (text: string) => T | undefined;
}

export const normalised = <T>({ allowed, read }: ReadText<T>) =>
  parsed((given) => unquoted(given) ?? `give ${allowed}`, read);

interface BoundedRead<T> extends ReadText<T> {
  max?: number;
}

/** Parses comma-separated items or a YAML list. */
export function list<T>({ allowed, read, max = Infinity }: BoundedRead<T>) {
  const most = max === Infinity ? '' : `at most ${max} `;
  const joined = (given: unknown, context: z.RefinementCtx): unknown => {
    if (!Array.isArray(given)) return given;
    for (const [at, each] of given.entries()) {
      const message = unquoted(each);
      if (message !== undefined) context.addIssue({ code: 'custom', message, path: [at] });
    }
    return given.join(',');
  };
  const readAll = (given: string): T[] | undefined => {
    const values = given.split(',').map((item) => read(item.trim()));
    return values.length <= max && values.every((item) => item !== undefined) ? values : undefined;
  };
  const listed = normalised({ allowed: `${most}${allowed}, separated by commas`, read: readAll });
  return z.preprocess(joined, listed);
}

/** Parses a string or a YAML list of strings. Unlike `list`, it does not split at commas. */
export function items<T>({ allowed, read }: ReadText<T>) {
  const error = `give ${allowed}`;
  const listed = (given: unknown): unknown => (Array.isArray(given) ? given : [given]);
  return z.preprocess(listed, z.array(normalised({ allowed, read })).min(1, { error }));
}

export const mappings = <T extends z.ZodType>(item: T) =>
  z
    .array(item, { error: 'give a list of mappings; in a variable as JSON' })
    .default([])
    .meta({ structured: true });

/** Parses a duration such as `1.8s`, or a size such as `8KiB`; returns undefined for invalid text. */
function parseQuantity(text: string, units: Measure['units']): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(text) ?? [];
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined;
  return amount === undefined || factor === undefined ? undefined : Math.round(Number(amount) * factor);
}

/** A period for the handles under a prefix (`21.T1`, `21.T1.*` or `*`, in upper case). */
export interface PrefixPeriod {
  prefixes: readonly string[];
  ms: number;
}

/** Value of `forever`: 100 years, which Redis accepts as an expiry. */
export const FOREVER_MS = 36_500 * 86_400_000;
const MAX_MS = 365 * 86_400_000;

const DEFAULT = 'default';

const PERIOD = 'a duration from 0s to 365d with its unit (ms, s, m, h, d), or forever';
const ERROR = `give ${PERIOD}; or a mapping such as {default: 24h, 21.T1: forever} of prefixes (21.T1, 21.T1.* for those derived from it) with a default`;

/** Converts a pattern (`21.T1`, `21.T1.*` or `*`) to upper case, because prefixes ignore ASCII case. */
export function readPrefixPattern(given: string): string | undefined {
  const isPattern = given === '*' || /^[^\s/*.]+(?:\.[^\s/*.]+)*(?:\.\*)?$/.test(given);
  return isPattern ? upperAscii(given) : undefined;
}

/** Converts a prefix, which is no pattern, to upper case. */
export const readPrefixName = (given: string): string | undefined =>
  given.includes('*') ? undefined : readPrefixPattern(given);

/** Parses a duration, `forever`, or a mapping of prefixes to either; a variable has it as JSON or YAML. */
export const prefixPeriods = (byDefault: string) =>
  z
    .union([z.string(), z.record(z.string(), z.string())], { error: ERROR })
    .transform((given, context) => {
      const periods = readPeriods(typeof given === 'string' ? { [DEFAULT]: given } : given);
      if (periods !== undefined) return periods;
      context.addIssue({ code: 'custom', message: ERROR });
      return z.NEVER;
    })
    .prefault(byDefault)
    .meta({ structured: true });

/** Returns undefined for a missing default, a repeated prefix, or an invalid prefix or period. */
function readPeriods(given: Readonly<Record<string, string>>): PrefixPeriod[] | undefined {
  const periods = new Map<string, number>();
  for (const [name, text] of Object.entries(given)) {
    const pattern = name === DEFAULT ? '*' : readPrefixPattern(name);
    const ms = readPeriod(text);
    if (pattern === undefined || ms === undefined || periods.has(pattern)) return undefined;
    periods.set(pattern, ms);
  }
  return periods.has('*') ? [...periods].map(([pattern, ms]) => ({ prefixes: [pattern], ms })) : undefined;
}

function readPeriod(text: string): number | undefined {
  if (text === 'forever') return FOREVER_MS;
  const ms = parseQuantity(text, DURATION.units);
  return ms === undefined || ms > MAX_MS ? undefined : ms;
}

/** Sections by name: whole, or the keys that one of several owners adds to a section. */
type Sections = Readonly<Record<string, z.ZodType | Shape>>;

export type SectionsOf<S extends Sections> = {
  [Name in keyof S]: S[Name] extends z.ZodType
    ? z.output<S[Name]>
    : S[Name] extends Shape
      ? WithUnits<z.output<z.ZodObject<S[Name]>>>
      : never;
};

export type Blame = readonly [key: string, message: string];

/** A combination of keys that is not allowed. `other`: the key to blame if only that one is set. */
export type Rule = readonly [isBroken: boolean, ...Blame, other?: Blame];

/** A key, and what is wrong with its value on this machine. */
export type StartProblem = readonly [key: string, text: string | undefined];

/** Part of the configuration that one owner adds. */
export interface ConfigPart<Settings> {
  readonly sections?: Sections;
  /** Rules that involve several keys. */
  rules?(settings: Settings): readonly Rule[];
  /** Checks what a schema cannot, such as files. `readFile` returns a file's text; requests wait during a reload. */
  startProblems?(
    settings: Settings,
    readFile: (path: string) => string,
    isReload: boolean,
  ): readonly StartProblem[];
}

/** Returns the schema of all parts. An unknown section or key is an error. */
export function joinSections<Settings>(parts: readonly ConfigPart<Settings>[]): z.ZodType<Settings> {
  const whole: Record<string, z.ZodType> = {};
  const shared: Record<string, Shape> = {};
  for (const [name, own] of parts.flatMap(({ sections = {} }) => Object.entries(sections))) {
    if (own instanceof z.ZodType) whole[name] = own;
    else if (name in whole && !(name in shared)) throw new TypeError(`section ${name} has one owner`);
    else whole[name] = section((shared[name] = { ...shared[name], ...own }));
  }
  const schema = z.strictObject(whole) as unknown as z.ZodType<Settings>;
  return schema.check(({ value, issues }) => {
    for (const [isBroken, key, message, other] of parts.flatMap((part) => part.rules?.(value) ?? []))
      if (isBroken)
        issues.push({ code: 'custom', path: key.split('.'), message, params: { other }, input: undefined });
  });
}
