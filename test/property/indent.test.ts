// Indented JSON has the same bytes and the same length as `JSON.stringify`, and a bounded length.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { extractObject, indentJson, indentedLength } from '../../src/handle/json.js';
import { runToEnd } from '../../src/time-slicer.js';
import { handleServerRecordings } from '../support/recordings.js';

const indent = (json: string, depth?: number): string => runToEnd(indentJson(json, depth));
const predict = (json: string): number => runToEnd(indentedLength(Buffer.from(json)));

const values = fc.jsonValue({ maxDepth: 8, stringUnit: 'binary' });

describe('indented JSON', () => {
  test('has the predicted length, and at most four times the length of the original', () => {
    let long = 0;
    fc.assert(
      fc.property(values, fc.integer({ min: 0, max: 40 }), (value, levels) => {
        let nested: unknown = [value];
        for (let level = 0; level < levels; level++) nested = level % 2 === 0 ? [nested] : { a: nested };
        const json = JSON.stringify(nested);
        const indented = JSON.stringify(nested, null, 2);
        expect(predict(json)).toBe(Buffer.byteLength(indented));
        const isLong = Buffer.byteLength(indented) > 4 * Buffer.byteLength(json);
        expect(indent(json)).toBe(isLong ? json : indented);
        if (isLong) long++;
      }),
    );
    expect(long).toBeGreaterThan(0);
  });

  test('has no other spaces than the indentation, however the original is spaced', () => {
    fc.assert(
      fc.property(values, fc.constantFrom(1, 4, '\t', '\r\n '), (value, space) => {
        expect(indent(JSON.stringify(value, null, space))).toBe(JSON.stringify(value, null, 2));
      }),
    );
  });

  test('does not depend on where a step ends', () => {
    const piece = fc.constantFrom('\\', '"', '\\"', 'é', '𝄞', ',', '[', ' ');
    fc.assert(
      fc.property(fc.integer({ min: -20, max: 20 }), fc.array(piece, { minLength: 20 }), (shift, pieces) => {
        const value = ['x'.repeat(64 * 1024 + shift), pieces, 'y'.repeat(64 * 1024), pieces.join(''), {}];
        expect(indent(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
      }),
    );
  });

  test('keeps numbers and escapes as written', () => {
    expect(indent('{"a":[1.0,1e2,-0],"b":"\\u00e9\\/"}')).toBe(
      '{\n  "a": [\n    1.0,\n    1e2,\n    -0\n  ],\n  "b": "\\u00e9\\/"\n}',
    );
  });

  test('starts at the given level', () => {
    expect(`[\n  ${indent('{"handle":"21.T1/1","body":{}}', 1)}\n]`).toBe(
      JSON.stringify([{ handle: '21.T1/1', body: {} }], null, 2),
    );
  });

  test('has the same bytes as `JSON.stringify` for every recorded response', () => {
    const recorded = handleServerRecordings
      .map(({ response }) => extractObject(response.body ?? ''))
      .filter((json) => json !== '');
    for (const json of recorded) {
      expect(indent(json)).toBe(JSON.stringify(JSON.parse(json), null, 2).replaceAll('\u2028', '\\u2028'));
    }
    expect(recorded.length).toBeGreaterThan(200);
  });
});
