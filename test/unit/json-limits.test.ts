import { describe, expect, test } from 'vitest';
import { JsonLimitError, parseJson } from '../../src/handle/json.js';

const lists = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const objects = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);

/** A list of objects with the given names. */
function objectsOf(count: number, namesOf: (at: number) => string[]): string {
  const objects = Array.from({ length: count }, (_, at) =>
    namesOf(at)
      .map((name) => `"${name}":"01234"`)
      .join(),
  );
  return `[${objects.map((members) => `{${members}}`).join()}]`;
}

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

  test.each<[what: string, namesOf: (at: number) => string[]]>([
    ['one name each', (at) => [`name${at}`]],
    ['the same first name', (at) => (at === 0 ? ['a'] : ['a', `name${at}`])],
  ])('accepts 1,024 sequences of names and rejects more: %s', (_what, namesOf) => {
    expect(parseJson(objectsOf(1024, namesOf))).toHaveLength(1024);
    expect(() => parseJson(objectsOf(1025, namesOf))).toThrow(
      'JSON with more than 1024 sequences of member names',
    );
  });

  test('accepts 1,024 members of an object and rejects more', () => {
    const names = Array.from({ length: 1025 }, (_, at) => `name${at}`);
    expect(parseJson(objectsOf(20, () => names.slice(1)))).toHaveLength(20);
    expect(() => parseJson(objectsOf(20, () => names))).toThrow(JsonLimitError);
  });

  test('counts sequences of the same names in another order', () => {
    const letters = 'abcdefghijklmnopqrstuvwxyz'.split('');
    const rotated = (at: number): string[] => [...letters.slice(at % 26), ...letters.slice(0, at % 26)];
    expect(parseJson(objectsOf(500, rotated))).toHaveLength(500);
    const inBothOrders = (at: number): string[] =>
      at % 2 === 0 ? rotated(at / 2) : rotated((at - 1) / 2).reverse();
    expect(() => parseJson(objectsOf(500, inBothOrders))).toThrow(JsonLimitError);
  });

  test('accepts any number of objects that begin alike', () => {
    expect(parseJson(objectsOf(20_000, (at) => ['a', 'b', 'c'].slice(0, at % 4)))).toHaveLength(20_000);
  });

  test('rejects any names in an object above 16 KiB', () => {
    const long = objectsOf(1, () => Array.from({ length: 1025 }, (_, at) => `name ${at}`));
    expect(long.length).toBeGreaterThan(16 * 1024);
    expect(long.length).toBeLessThan(24 * 1024);
    expect(() => parseJson(long)).toThrow(JsonLimitError);
  });

  test('accepts any names in an object up to 16 KiB', () => {
    const short = objectsOf(1, () => Array.from({ length: 1025 }, (_, at) => `${at}`));
    expect(short.length).toBeLessThan(16 * 1024);
    expect(parseJson(short)).toEqual(JSON.parse(short));
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
