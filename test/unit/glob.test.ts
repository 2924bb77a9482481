import { fc, test } from '../support/property.js';
import { describe, expect } from 'vitest';
import { compileGlobs } from '../../src/handle/handle.js';

/** The definition: `*` matches any text, also an empty one. */
function matchesByDefinition(pattern: string, text: string): boolean {
  if (pattern === '') return text === '';
  const [first, rest] = [pattern.charAt(0), pattern.slice(1)];
  if (first !== '*') return text.startsWith(first) && matchesByDefinition(rest, text.slice(1));
  return Array.from({ length: text.length + 1 }, (_, at) => text.slice(at)).some((tail) =>
    matchesByDefinition(rest, tail),
  );
}

const textOf = (characters: string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...characters), { maxLength: 7 }).map((parts) => parts.join(''));

describe('pattern of the configuration', () => {
  test.prop([textOf(['A', 'B', '.', '*']), textOf(['A', 'B', '.'])], { numRuns: 2000 })(
    'matches a text as it is defined, with * for any text and nothing else special',
    (pattern, text) => {
      expect(compileGlobs([pattern])(text)).toBe(matchesByDefinition(pattern, text));
    },
  );

  test('ignores the case of ASCII letters only', () => {
    expect(compileGlobs(['21.t1/É*'])('21.T1/ÉA')).toBe(true);
    expect(compileGlobs(['21.t1/É*'])('21.T1/éa')).toBe(false);
  });

  test('is one of several', () => {
    const matches = compileGlobs(['a*', '*b']);
    expect([matches('ax'), matches('xb'), matches('x')]).toEqual([true, true, false]);
    expect(compileGlobs([])('x')).toBe(false);
  });

  const long = fc
    .array(fc.constantFrom('A', 'AB'), { maxLength: 40 })
    .map((parts) => parts.join('').repeat(60));

  test.prop([long, fc.nat(100), long])('matches a long text with a long part', (text, at, part) => {
    const inside = text.slice(at, -1);
    expect(compileGlobs([`*${inside}*`])(text)).toBe(true);
    expect(compileGlobs([`A*${part}*`])(text)).toBe(text.startsWith('A') && text.includes(part, 1));
  });

  test('of many * ends for a text that almost matches in every way', () => {
    expect(compileGlobs([`${'*-'.repeat(20)}x`])('-'.repeat(100_000))).toBe(false);
  });
});
