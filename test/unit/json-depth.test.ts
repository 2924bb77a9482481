import { describe, expect, test } from 'vitest';
import { NestingError, parseJson } from '../../src/handle/json.js';

const lists = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const objects = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);

describe('JSON parser with a maximum depth', () => {
  test.each([lists, objects])('accepts 1,000 levels and rejects 1,001', (nest) => {
    expect(JSON.stringify(parseJson(nest(1000)), null, 2)).toContain('    ');
    expect(() => parseJson(nest(1001))).toThrow(NestingError);
    expect(() => parseJson(`[${nest(1000)}]`)).toThrow(NestingError);
  });

  test.each([
    ['in sequence', `[${Array<string>(5000).fill('[{}]').join()}]`],
    ['in a string', JSON.stringify(['['.repeat(5000), '{"'.repeat(5000), '\\"['.repeat(5000)])],
    ['in a string that ends with a backslash', `["${'['.repeat(2000)}\\\\"]`],
  ])('accepts thousands of brackets that are not nested: %s', (_where, json) => {
    expect(parseJson(json)).toEqual(JSON.parse(json));
  });

  test.each([
    '['.repeat(1_000_000),
    '"'.repeat(1001),
    `${'['.repeat(1500)}"`,
    ']'.repeat(3000),
    `"${'\\'.repeat(5000)}`,
  ])('throws for invalid JSON of any length', (text) => {
    expect(() => parseJson(text)).toThrow();
  });
});
