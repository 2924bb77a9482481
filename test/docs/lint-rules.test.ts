// The lint rejects what SECURITY.md says that it rejects.
import { Linter } from 'eslint';
import { describe, expect, test } from 'vitest';
import config from '../../config/eslint.config.js';

const ofSource = (config as Linter.Config[]).filter(({ rules = {} }) => 'no-restricted-syntax' in rules);

/** Returns the rules that reject the code in a file of `src`. */
function rejectedBy(code: string, file = 'src/handle/new.ts'): (string | null)[] {
  const rules = ofSource.map(({ plugins, rules: own, files }) => ({
    ...(plugins && { plugins }),
    ...(own && { rules: own }),
    ...(files && { files }),
  }));
  return new Linter({ configType: 'flat' }).verify(code, rules, file).map(({ ruleId }) => ruleId);
}

describe('lint of regular expressions', () => {
  test.each([
    ['/(?:a+)+b/.test(x)', 'regexp/no-super-linear-backtracking'],
    ['x.match(/a*a*$/)', 'regexp/no-super-linear-backtracking'],
    ['/a*$/.test(x)', 'regexp/no-super-linear-move'],
    ['/^(?:\\w|\\d)*$/.test(x)', 'regexp/no-dupe-disjunctions'],
  ])('rejects a literal whose parts compete for the same text: %s', (code, rule) => {
    expect(rejectedBy(code)).toContain(rule);
  });

  test.each([
    'new RegExp(pattern)',
    'RegExp(pattern)',
    'new RegExp(`^${pattern}$`)',
    "new RegExp('^' + pattern)",
    'new globalThis.RegExp(pattern)',
    'new RegExp(/a/.source + pattern, "g")',
  ])('rejects an expression that is composed at run time: %s', (code) => {
    expect(rejectedBy(code)).toEqual(['no-restricted-syntax']);
  });

  test.each(['/^a+$/.test(x)', "new RegExp('^a+$')"])('accepts a linear literal: %s', (code) => {
    expect(rejectedBy(code)).toEqual([]);
  });

  test('accepts the one expression that is composed of constants', () => {
    expect(rejectedBy('new RegExp(phrases)', 'src/cache/memory/phrase-codec.ts')).toEqual([]);
  });
});
