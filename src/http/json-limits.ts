// Limits for JSON from clients, checked before it is parsed, and validation that stops at the first problem.
import type { z } from 'zod';
import { endOfString } from '../handle/json.js';

/** The limits of an interface. */
export interface JsonLimits {
  /** Maximum elements of a list. */
  elements: number;
  /** Maximum commas and opening brackets, of which each has one value. */
  values: number;
}

/** Maximum members of an object; the objects of the interfaces have up to fourteen. */
const MAX_MEMBERS = 64;
/** Maximum nesting depth; bodies of the interfaces have up to four levels. */
const MAX_LEVELS = 32;

/** The limit that a text exceeds. */
export interface Excess {
  kind: 'elements' | 'members' | 'levels' | 'values';
  max: number;
}

// Character codes, because comparing characters as texts takes forty times as long.
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

interface Container {
  kind: 'elements' | 'members';
  max: number;
  /** Elements or members so far. */
  size: number;
}

/**
 * Returns the first limit that JSON exceeds. It reads no further: a megabyte of `{},` takes 60 ms to parse, and
 * seconds to validate. The text may be invalid JSON.
 */
export function findExcess(json: string, limits: JsonLimits): Excess | undefined {
  const open: Container[] = [];
  let values = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) open.pop();
    else if (code === COMMA || code === OPEN_BRACKET || code === OPEN_BRACE) {
      const excess = countValue(open, code, limits);
      if (excess !== undefined) return excess;
      if (++values > limits.values) return { kind: 'values', max: limits.values };
    }
  }
  return undefined;
}

/** Counts the value after a comma, or the first of a new list or object. */
function countValue(open: Container[], code: number, { elements }: JsonLimits): Excess | undefined {
  if (code === COMMA) {
    const container = open.at(-1);
    if (container === undefined || ++container.size <= container.max) return undefined;
    return { kind: container.kind, max: container.max };
  }
  if (open.length === MAX_LEVELS) return { kind: 'levels', max: MAX_LEVELS };
  open.push(
    code === OPEN_BRACKET
      ? { kind: 'elements', max: elements, size: 1 }
      : { kind: 'members', max: MAX_MEMBERS, size: 1 },
  );
  return undefined;
}

const WORDS: Readonly<Record<Excess['kind'], (max: number) => string>> = {
  elements: (max) => `a list has more than ${max} elements`,
  members: (max) => `an object has more than ${max} members`,
  levels: (max) => `it is nested deeper than ${max} levels`,
  values: (max) => `it has more than ${max} values`,
};

export const describeExcess = ({ kind, max }: Excess): string => WORDS[kind](max);

/** Ends a list or an object at its first issue, as in zod's `validate`, which returns no issue. */
const FIRST_ISSUE: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/** Validates with a schema up to the first issue. Collecting one for each element takes 4 µs an element. */
export const parseUpToIssue = <T extends z.ZodType>(
  schema: T,
  given: unknown,
): z.ZodSafeParseResult<z.output<T>> => schema.safeParse(given, FIRST_ISSUE);
