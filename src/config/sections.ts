// Joins the sections of the configuration: those of the core, and those of each plugin.
import { z } from 'zod';
import { type Shape, type WithUnits, section } from './fields.js';

/** Sections by name: whole, or the keys that one of several owners adds to a section. */
type Sections = Readonly<Record<string, z.ZodType | Shape>>;

/** The parsed sections. */
export type SectionsOf<S extends Sections> = {
  [Name in keyof S]: S[Name] extends z.ZodType
    ? z.output<S[Name]>
    : S[Name] extends Shape
      ? WithUnits<z.output<z.ZodObject<S[Name]>>>
      : never;
};

/** A key, and what is allowed for it. */
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
