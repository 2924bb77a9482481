import { describe, expect, test } from 'vitest';
import { JsonLimitError, parseJson } from '../../src/handle/json.js';

const lists = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const objects = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);

describe('JSON parser with limits', () => {
  test.each([lists, objects])('accepts 64 levels and rejects 65', (nest) => {
    expect(parseJson(nest(64))).toEqual(JSON.parse(nest(64)));
    expect(() => parseJson(nest(65))).toThrow(JsonLimitError);
    expect(() => parseJson(`[${nest(64)}]`)).toThrow(JsonLimitError);
  });

  test.each(['{}', '[]', '0', 'null', ' 0 '])('accepts 65,536 elements and rejects more: %s', (element) => {
    // A comma precedes each element, as a number without one does not count.
    const list = (count: number): string => `["",${Array<string>(count).fill(element).join()}]`;
    expect(parseJson(list(65_535))).toHaveLength(65_536);
    expect(() => parseJson(list(65_536))).toThrow('JSON with more than 65536 elements');
  });

  test('accepts any number of texts, as in a list of handles', () => {
    expect(parseJson(JSON.stringify(Array(500_000).fill('1/2')))).toHaveLength(500_000);
  });

  test('accepts a record of 2 MiB with the shortest values', () => {
    const value = '{"index":1,"type":"A","data":{"format":"string","value":""},"ttl":1},';
    const json = `[${value.repeat((2 * 1024 * 1024) / value.length).slice(0, -1)}]`;
    expect(parseJson(json)).toHaveLength(30_393);
  });

  test.each([
    ['in sequence', `[${Array<string>(5000).fill('[{}]').join()}]`],
    ['in a string', JSON.stringify(['['.repeat(70_000), '{"'.repeat(5000), '\\"['.repeat(5000)])],
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
