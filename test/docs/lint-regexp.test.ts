// The lint: an expression with two ways to match the same text is an error in src.
import { ESLint } from 'eslint';
import { expect, test } from 'vitest';

const eslint = new ESLint({
  overrideConfigFile: 'config/eslint.config.js',
  // Without types: a snippet belongs to no project.
  ruleFilter: ({ ruleId }) => ruleId.startsWith('regexp/'),
});

async function complaintsOf(expression: string): Promise<(string | null)[]> {
  const [result] = await eslint.lintText(`export const tested = ${expression};\n`, {
    filePath: 'src/errors.ts',
  });
  return result?.messages.map(({ ruleId }) => ruleId) ?? [];
}

test.each([
  ['/^\\d*\\.?\\d+$/', 'regexp/no-super-linear-backtracking'],
  // That of the path of a site record took 15 s for 60,000 slashes.
  ["'x'.replace(/^\\/+|\\/+$/g, '')", 'regexp/no-super-linear-move'],
])('%s is refused', async (expression, rule) => {
  expect(await complaintsOf(expression)).toContain(rule);
});

test('a linear expression is not refused', async () => {
  expect(await complaintsOf('/^[a-z]+:\\d{1,5}$/')).toEqual([]);
});
