// Lists of texts are parsed in steps like in one piece, whatever their texts and their spaces.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonLimitError } from '../../src/handle/json.js';
import { charsIn, parseTexts, writeTexts } from '../../src/handle/json-texts.js';
import { flatMapGroups, runToEnd } from '../../src/time-slicer.js';
import { countSteps } from '../support/steps.js';

const parse = (json: string) => runToEnd(parseTexts(json));

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '"', '\\', '\\"', '",', '[', ']', ',', 'null'),
);
/** Texts of nearly as many characters as a step has. */
const long = fc.integer({ min: 0, max: 10_000 }).map((length) => 'x"'.repeat(length / 2));
const list = fc.array(fc.oneof({ weight: 9, arbitrary: text }, long));
const space = fc.constantFrom(undefined, 1, '\t', '\r\n ');

describe('a list of texts', () => {
  test('is parsed alone and as a member', () => {
    fc.assert(
      fc.property(list, space, text, (texts, indent, other) => {
        expect(parse(JSON.stringify(texts, null, indent))).toMatchObject({ texts });
        const members = { responseCode: 1, other, handles: texts, last: other };
        const { rest, ...parsed } = parse(JSON.stringify(members, null, indent));
        expect(parsed).toEqual({ texts });
        expect(JSON.parse(rest)).toEqual({ ...members, handles: [] });
      }),
    );
  });

  test('is written like in one piece', () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 2000 }), (texts) => {
        expect(`[${runToEnd(flatMapGroups(texts, (group) => [writeTexts(group)])).join(',')}]`).toBe(
          JSON.stringify(texts).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029'),
        );
        expect(charsIn(texts)).toBe(texts.join('').length);
      }),
    );
  });

  test('is that of the handles, whatever other lists the object has', () => {
    const others = '{"notes":["maintenance"],"codes":[1],"handles":';
    expect(parse(`${others}["1/a"]}`)).toEqual({ texts: ['1/a'], rest: `${others}[]}` });
  });

  test('omits null', () => {
    expect(parse('[null, "a",null]')).toEqual({ texts: ['a'], rest: '[]' });
    expect(parse('null')).toEqual({ texts: [], rest: 'null' });
  });

  test('has a step for every 16 KiB', () => {
    const json = JSON.stringify(Array<string>(100_000).fill('0123456789'));
    expect(countSteps(parseTexts(json)).steps).toBeGreaterThan(json.length / (17 * 1024));
  });

  const FULL = `"${'x'.repeat(16_384 - 2)}"`;

  test.each([
    ['a comma at the end', '["a",]'],
    ['a comma at the end of a step', `[${FULL},]`],
    ['two commas', '["a",,"b"]'],
    ['a missing comma', '["a" "b"]'],
    ['a missing comma behind a step', `[${FULL},"b" "c"]`],
    ['no end', '["a"'],
    ['an open text', '["a'],
    ['two ends', '["a"]]'],
    ['a number', '["a",1]'],
    ['an object', '["a",{}]'],
    ['a list', '[["a"]]'],
    ['another list', '{"handles":["b"],"c":["d"]}'],
  ])('with %s is invalid, or leaves more than an empty list', (_what, json) => {
    const parsed = (): unknown => {
      const { rest } = parse(json);
      return JSON.parse(rest);
    };
    let rest: unknown;
    try {
      rest = parsed();
    } catch {
      return;
    }
    expect(rest).not.toEqual([]);
    expect(rest).not.toEqual({ handles: [] });
  });

  test.each([
    ['a long other member', `{"handles":["b"],"c":${FULL}}`],
    ['a long member before it', `{"c":${FULL},"handles":["b"]}`],
    ['a long text instead', '"' + 'x'.repeat(20_000) + '"'],
    ['a text that is too long for a handle', `["a",${FULL.replace('x', 'xx')}]`],
  ])('with %s is rejected before the rest is parsed in one piece', (_what, json) => {
    expect(() => parse(json)).toThrow(JsonLimitError);
  });
});
