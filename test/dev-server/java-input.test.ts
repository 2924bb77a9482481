// Lenient JSON parsing: the demo server accepts what Gson accepts, and has the error texts of Gson.
import { describe, expect, it } from 'vitest';
import { readJson } from '../../src/dev-server/java-input.js';

describe('lenient JSON parser (Gson)', () => {
  it.each([
    ["{a:'it\\'s',b:[1,true,null],c:word}", { a: "it's", b: [1, true, null], c: 'word' }],
    ['{"a" : "x\\u0041\\n", }', { a: 'xA\n' }],
    ['  ', null],
  ])('parses %s', (text, value) => {
    expect(readJson(text)).toEqual(value);
  });

  it.each([
    ['{', 'java.io.EOFException: End of input at line 1 column 2 path $.'],
    ['{"values":[', 'java.io.EOFException: End of input at line 1 column 12 path $.values[0]'],
    ['[1,\n2', 'java.io.EOFException: End of input at line 2 column 2 path $[2]'],
    ['{"a" 1}', "com.google.gson.stream.MalformedJsonException: Expected ':' at line 1 column 6 path $.a"],
    [
      '{"a":1 2}',
      'com.google.gson.stream.MalformedJsonException: Unterminated object at line 1 column 8 path $.a',
    ],
    ["{'a", 'com.google.gson.stream.MalformedJsonException: Unterminated string at line 1 column 4 path $.'],
  ])('rejects %s and names the position', (text, message) => {
    expect(() => readJson(text)).toThrow(`com.google.gson.JsonSyntaxException: ${message}`);
  });
});
