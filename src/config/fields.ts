// The kinds of values a configuration key can have; each kind says in one text what it allows.
import { z } from 'zod';
import { parseDuration, parseSize } from './units.js';

type Shape = Readonly<Record<string, z.ZodType>>;

/** Part of the configuration: refuses unknown keys and may be left out as a whole. */
export const section = <T extends Shape>(keys: T) =>
  z.strictObject(keys).prefault({} as z.input<z.ZodObject<T>>);

/** Marks a key, or a section with all its keys, whose new value SIGHUP brings into effect. */
export const reloadable = <T extends z.ZodType>(schema: T): T =>
  schema.meta({ ...schema.meta(), reloadable: true });

interface Measure {
  kind: string;
  example: string;
  parse: (text: string) => number | undefined;
}

interface Range<T> {
  min: T;
  max: T;
  byDefault: T;
}

/** A duration with its unit (`60s`), as milliseconds. */
export function duration(range: Range<string>) {
  return measured(
    { kind: 'a duration with its unit (ms, s, m, h, d)', example: 's', parse: parseDuration },
    range,
  );
}

/** A size with its unit (`8KiB`), as bytes. */
export function size(range: Range<string>) {
  return measured(
    { kind: 'a size with its unit (B, KiB, MiB, GiB)', example: 'KiB', parse: parseSize },
    range,
  );
}

function measured({ kind, example, parse }: Measure, { min, max, byDefault }: Range<string>) {
  const lowest = parse(min) ?? 0;
  const highest = parse(max) ?? 0;
  const allowed = (given: unknown): string => {
    const text = `give ${kind} from ${min} to ${max}`;
    return /^[\d.]+$/.test(String(given))
      ? `the unit is missing, such as ${String(given)}${example}; ${text}`
      : text;
  };
  return z
    .string({ error: ({ input }) => allowed(input) })
    .transform((text, context) => {
      const value = parse(text);
      if (value !== undefined && value >= lowest && value <= highest) return value;
      context.addIssue({ code: 'custom', message: allowed(text) });
      return z.NEVER;
    })
    .prefault(byDefault);
}

/** A whole number; digits in a text count as one, because variables hold nothing but texts. */
export function wholeNumber({ min, max, byDefault }: Range<number>) {
  const error = `give a whole number from ${min} to ${max}`;
  const fromText = (given: unknown) =>
    typeof given === 'string' && /^-?\d+$/.test(given) ? Number(given) : given;
  return z.preprocess(fromText, z.int({ error }).min(min, { error }).max(max, { error })).prefault(byDefault);
}

/** `true` or `false`, also as a text. */
export function yesOrNo(byDefault: boolean) {
  const fromText = (given: unknown) => (given === 'true' ? true : given === 'false' ? false : given);
  return z.preprocess(fromText, z.boolean({ error: 'give true or false' })).prefault(byDefault);
}

/** One word out of a list. */
export function oneOf<const T extends readonly string[]>(words: T, byDefault: T[number]) {
  return z.enum(words, { error: `give one of ${words.join(', ')}` }).prefault(byDefault);
}

/** A text that has to look a certain way. */
export function text({ allowed, pattern }: { allowed: string; pattern: RegExp }) {
  const error = `give ${allowed}`;
  return z.string({ error }).regex(pattern, { error });
}

/** A text that is turned into another spelling of itself; undefined from `read` means it is refused. */
export function spelled({ allowed, read }: { allowed: string; read: (text: string) => string | undefined }) {
  const error = `give ${allowed}`;
  return z.string({ error }).transform((given, context) => {
    const value = read(given);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  });
}

/** Texts separated by commas, each read on its own; undefined from `read` means it is refused. */
export function list<T>({ allowed, read }: { allowed: string; read: (item: string) => T | undefined }) {
  const error = `give ${allowed}, separated by commas`;
  return z.string({ error }).transform((given, context) => {
    const items = given.split(',').map((item) => read(item.trim()));
    if (items.every((item) => item !== undefined)) return items;
    context.addIssue({ code: 'custom', message: error });
    return z.NEVER;
  });
}
