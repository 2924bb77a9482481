// The kinds of values a configuration key can have, each with an error text that names what is allowed.
import { z } from 'zod';

type Shape = Readonly<Record<string, z.ZodType>>;

type Unit = 'Ms' | 'Bytes';

/** `timeout` is read as `timeoutMs`, `maxBodySize` as `maxBodyBytes`; `gzipMinBytes` has its unit already. */
export type NameWithUnit<Name, Value> = Name extends string
  ? Value extends z.core.$brand<'Ms'>
    ? `${Name}Ms`
    : Value extends z.core.$brand<'Bytes'>
      ? Name extends `${infer Stem}Size`
        ? `${Stem}Bytes`
        : Name extends `${string}ytes${string}`
          ? Name
          : `${Name}Bytes`
      : Name
  : Name;

export type WithUnits<T> = {
  [Name in keyof T as NameWithUnit<Name, T[Name]>]: T[Name] extends
    z.core.$brand<'Ms'> | z.core.$brand<'Bytes'>
    ? number
    : T[Name];
};

/** The name of a key after parsing. */
export function nameWithUnit(name: string, schema: z.ZodType): string {
  const unit = schema.meta()?.['unit'] as Unit | undefined;
  if (unit === 'Ms') return `${name}Ms`;
  if (unit === undefined || /bytes/i.test(name)) return name;
  return `${name.replace(/Size$/, '')}Bytes`;
}

/** A mapping that rejects unknown keys. Parsed durations and sizes have their unit in their name. */
export const mapping = <T extends Shape>(keys: T) => {
  const named = Object.entries(keys).map(([name, schema]) => [name, nameWithUnit(name, schema)] as const);
  return z.strictObject(keys).transform((given) => {
    const values: Readonly<Record<string, unknown>> = given;
    return Object.fromEntries(named.map(([name, withUnit]) => [withUnit, values[name]])) as WithUnits<
      z.output<z.ZodObject<T>>
    >;
  });
};

/** A part of the configuration, which may be omitted as a whole. */
export const section = <T extends Shape>(keys: T) => mapping(keys).prefault({} as z.input<z.ZodObject<T>>);

/** Marks a key, or all keys of a section, as applied on SIGHUP without a restart. */
export const reloadable = <T extends z.ZodType>(schema: T): T =>
  schema.meta({ ...schema.meta(), reloadable: true });

interface Measure {
  kind: string;
  example: string;
  parse: (text: string) => number | undefined;
}

interface AllowedRange<T> {
  min: T;
  max: T;
  byDefault: T;
}

/** A duration with its unit (`60s`), as milliseconds. */
export function duration(range: AllowedRange<string>) {
  return measured(
    { kind: 'a duration with its unit (ms, s, m, h, d)', example: 's', parse: parseDuration },
    range,
  )
    .brand<'Ms'>()
    .prefault(range.byDefault)
    .meta({ unit: 'Ms' satisfies Unit });
}

/** A size with its unit (`8KiB`), as bytes. */
export function size(range: AllowedRange<string>) {
  return measured(
    { kind: 'a size with its unit (B, KiB, MiB, GiB)', example: 'KiB', parse: parseSize },
    range,
  )
    .brand<'Bytes'>()
    .prefault(range.byDefault)
    .meta({ unit: 'Bytes' satisfies Unit });
}

function measured({ kind, example, parse }: Measure, { min, max }: AllowedRange<string>) {
  const lowest = parse(min) ?? 0;
  const highest = parse(max) ?? 0;
  const errorFor = (given: unknown): string => {
    const text = `give ${kind} from ${min} to ${max}`;
    return /^[\d.]+$/.test(String(given))
      ? `the unit is missing, such as ${String(given)}${example}; ${text}`
      : text;
  };
  return z.string({ error: ({ input }) => errorFor(input) }).transform((text, context) => {
    const value = parse(text);
    if (value !== undefined && value >= lowest && value <= highest) return value;
    context.addIssue({ code: 'custom', message: errorFor(text) });
    return z.NEVER;
  });
}

/** A whole number, also as a string of digits: environment variables are strings. */
export function wholeNumber({ min, max, byDefault }: AllowedRange<number>) {
  return integer(min, max).prefault(byDefault);
}

/** A part of a whole, also as a string. */
export function share({ min, max, byDefault }: AllowedRange<number>) {
  const error = `give a number from ${min} to ${max}`;
  const fromText = (given: unknown) =>
    typeof given === 'string' && /^(?:\d+(?:\.\d+)?|\.\d+)$/.test(given) ? Number(given) : given;
  return z
    .preprocess(fromText, z.number({ error }).min(min, { error }).max(max, { error }))
    .prefault(byDefault);
}

function integer(min: number, max: number) {
  const error = `give a whole number from ${min} to ${max}`;
  const fromText = (given: unknown) =>
    typeof given === 'string' && /^-?\d+$/.test(given) ? Number(given) : given;
  return z.preprocess(fromText, z.int({ error }).min(min, { error }).max(max, { error }));
}

/** The port of a listener that is off without it. */
export const optionalPort = () => integer(0, 65_535).optional();

/** `true` or `false`, also as a string. */
export function flag(byDefault: boolean) {
  const fromText = (given: unknown) => (given === 'true' ? true : given === 'false' ? false : given);
  return z.preprocess(fromText, z.boolean({ error: 'give true or false' })).prefault(byDefault);
}

/** One word of a list. */
export function oneOf<const T extends readonly string[]>(words: T, byDefault: T[number]) {
  return z.enum(words, { error: `give one of ${words.join(', ')}` }).prefault(byDefault);
}

/** A string that matches a pattern. */
export function text({ allowed, pattern }: { allowed: string; pattern: RegExp }) {
  const error = `give ${allowed}`;
  return z.string({ error }).regex(pattern, { error });
}

/** A string that is normalised; `read` returns undefined for an invalid one. */
export function normalised({
  allowed,
  read,
}: {
  allowed: string;
  read: (text: string) => string | undefined;
}) {
  const error = `give ${allowed}`;
  return z.string({ error }).transform((given, context) => {
    const value = read(given);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  });
}

/** Comma-separated items, or a YAML list of them; `read` returns undefined for an invalid one. */
export function list<T>({ allowed, read }: { allowed: string; read: (item: string) => T | undefined }) {
  const error = `give ${allowed}, separated by commas`;
  const joined = (given: unknown): unknown => (Array.isArray(given) ? given.join(',') : given);
  const items = z.string({ error }).transform((given, context) => {
    const values = given.split(',').map((item) => read(item.trim()));
    if (values.every((item) => item !== undefined)) return values;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  });
  return z.preprocess(joined, items);
}

/** One text or a YAML list of them; unlike in `list`, a comma is a part of its text. */
export function items<T>({ allowed, read }: { allowed: string; read: (item: string) => T | undefined }) {
  const error = `give ${allowed}`;
  const item = z.string({ error }).transform((given, context) => {
    const value = read(given);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  });
  const listed = (given: unknown): unknown => (Array.isArray(given) ? given : [given]);
  return z.preprocess(listed, z.array(item).min(1, { error }));
}

interface WholeList<T> {
  isValid: (list: readonly T[]) => boolean;
  error: string;
}

/** A list of mappings. Its variable has the list as JSON or YAML. */
export const mappings = <T extends z.ZodType>(item: T, whole?: WholeList<z.output<T>>) =>
  z
    .array(item, { error: 'give a list of mappings; in a variable as JSON' })
    .refine((list) => whole === undefined || whole.isValid(list), { error: whole?.error ?? '' })
    .default([])
    .meta({ structured: true });

const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const BYTES = { B: 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

/** Milliseconds of a duration such as `250ms`, `1.8s` or `24h`; undefined when it is invalid. */
export function parseDuration(text: string): number | undefined {
  return parseQuantity(text, MILLISECONDS);
}

/** Bytes of a size such as `8KiB` or `256MiB`; undefined when it is invalid. */
export function parseSize(text: string): number | undefined {
  return parseQuantity(text, BYTES);
}

function parseQuantity(text: string, units: Record<string, number>): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(text) ?? [];
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined;
  return amount === undefined || factor === undefined ? undefined : Math.round(Number(amount) * factor);
}
