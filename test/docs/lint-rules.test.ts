// The lint rejects what SECURITY.md says that it rejects.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ROOT } from '../support/built-proxy.js';

interface Found {
  code: string;
  filename: string;
}

const folder = mkdtempSync(join(tmpdir(), 'proxy-lint-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
copyFileSync(join(ROOT, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));

const SUPER_LINEAR: [code: string, rule: string][] = [
  ['/(?:a+)+b/.test(x)', 'regexp(no-super-linear-backtracking)'],
  ['x.match(/a*a*$/)', 'regexp(no-super-linear-backtracking)'],
  ['/a*$/.test(x)', 'regexp(no-super-linear-move)'],
  ['/^(?:\\w|\\d)*$/.test(x)', 'regexp(no-dupe-disjunctions)'],
];
const COMPOSED = [
  'new RegExp(pattern)',
  'RegExp(pattern)',
  'new RegExp(`^${pattern}$`)',
  "new RegExp('^' + pattern)",
  'new globalThis.RegExp(pattern)',
  'new RegExp(/a/.source + pattern, "g")',
];
const LINEAR = ['/^a+$/.test(x)', 'x.match(/^[^a]*a/)'];

const DECLARED = 'declare const x: string, pattern: string, phrases: string;\n';
const CODES = [...SUPER_LINEAR.map(([code]) => code), ...COMPOSED, ...LINEAR];
const fileOf = (code: string): string => `src/handle/case-${CODES.indexOf(code)}.ts`;
const ALLOWED = 'src/cache/memory/phrase-codec.ts';

/** Lints each code in a file of `src`, in one run. */
function lint(): Found[] {
  const files = CODES.map((code): [string, string] => [fileOf(code), code]);
  for (const [file, code] of [...files, [ALLOWED, 'new RegExp(phrases)'] as const]) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), `${DECLARED}export const result = ${code};\n`);
  }
  const args = [join(ROOT, 'node_modules/oxlint/bin/oxlint'), '--format=json', 'src'];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  expect(stderr).toBe('');
  return (JSON.parse(stdout) as { diagnostics: Found[] }).diagnostics;
}

const found = lint();
/** Returns the rules for regular expressions that reject a file. */
const rulesIn = (file: string): string[] =>
  found
    .filter(({ filename, code }) => filename === file && /^regexp|no-restricted/.test(code))
    .map(({ code }) => code);

describe('lint of regular expressions', () => {
  test.each(SUPER_LINEAR)('rejects a literal whose parts compete for the same text: %s', (code, rule) => {
    expect(rulesIn(fileOf(code))).toContain(rule);
  });

  test.each(COMPOSED)('rejects an expression that is composed at run time: %s', (code) => {
    expect(rulesIn(fileOf(code))).toHaveLength(1);
  });

  test.each(LINEAR)('accepts a linear literal: %s', (code) => {
    expect(rulesIn(fileOf(code))).toEqual([]);
  });

  test('accepts the one expression that is composed of constants', () => {
    expect(rulesIn(ALLOWED)).toEqual([]);
  });
});
