import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { z } from 'zod';
import { JsonLimitError, parseWithin } from '../../src/handle/json.js';
import { FIRST_ISSUE } from '../../src/http/request-body.js';

const LIMITS = { elements: 100, values: 1000 };
/** Returns the message for a limit that is exceeded; undefined also for invalid JSON. */
function excessIn(given: unknown, limits = LIMITS): string | undefined {
  try {
    parseWithin(limits, typeof given === 'string' ? given : JSON.stringify(given));
  } catch (error) {
    if (error instanceof JsonLimitError) return error.message;
  }
  return undefined;
}
const lists = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const list = (length: number, element: unknown = 0): unknown[] => Array<unknown>(length).fill(element);
const members = (count: number): object => Object.fromEntries(list(count).map((_, at) => [`m${at}`, at]));

describe('limits of JSON', () => {
  test.each<[what: string, within: unknown, beyond: unknown, excess: string]>([
    ['elements of a list', list(100), list(101), 'JSON with a list of more than 100 elements'],
    [
      'elements of an inner list',
      { a: [list(100)] },
      { a: [list(101)] },
      'JSON with a list of more than 100 elements',
    ],
    ['members of an object', members(1000), members(1001), 'JSON with more than 1000 values'],
    ['levels', lists(64), lists(65), 'JSON nested deeper than 64 levels'],
    ['values in total', list(10, list(99)), list(11, list(99)), 'JSON with more than 1000 values'],
  ])('count %s', (_what, within, beyond, excess) => {
    expect(excessIn(within)).toBeUndefined();
    expect(excessIn(beyond)).toBe(excess);
  });

  test('count no commas and brackets in strings', () => {
    expect(excessIn([',[{'.repeat(5000), '\\",[{'.repeat(5000), '\\'])).toBeUndefined();
  });

  test('count repeated members', () => {
    expect(excessIn(`{${'"a":0,'.repeat(1000)}"a":0}`)).toBe('JSON with more than 1000 values');
  });

  test.prop([fc.json({ maxDepth: 4 })])('accept ordinary JSON', (json) => {
    expect(excessIn(json, { elements: 1000, values: 10_000 })).toBeUndefined();
  });

  test.each(['[', '"', '{"a', ']]]]', ',,,,', '\\"[', ''])('accept a text that is no JSON: %j', (text) => {
    expect(excessIn(text)).toBeUndefined();
  });
});

describe('validation', () => {
  test.each<[what: string, schema: z.ZodType, given: unknown]>([
    ['a list', z.array(z.string()), list(1000)],
    ['a list in an object', z.strictObject({ a: z.array(z.string()) }), { a: list(1000) }],
    ['an object', z.object({ a: z.string(), b: z.string(), c: z.string() }), {}],
    ['a list after a list', z.array(z.unknown()).pipe(z.array(z.string())), list(1000)],
  ])('of %s ends at the first issue', (_what, schema, given) => {
    expect(schema.safeParse(given, FIRST_ISSUE).error?.issues).toHaveLength(1);
  });
});
