// Comments and READMEs cite only recordings that exist.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const textsIn = (folder: string, ending: RegExp): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => ending.test(path))
    .map((path) => readFileSync(join(folder, path), 'utf8'));

/** Returns the names in `recording "…"` and `recordings "…", "…"`, also across the lines of a comment. */
function cited(text: string): string[] {
  const joined = text.replaceAll(/\n\s*(?:\*|\/\/)?\s*/g, ' ');
  const lists = joined.match(/recordings? "[^"]+"(?:(?:, | and | to )"[^"]+")*/g) ?? [];
  return lists.flatMap((list) => [...list.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name));
}

test('a recording that is cited exists, and "…" in its name is any text', () => {
  const fixtures = textsIn('test/fixtures', /\.json$/).join('\n');
  const names = textsIn('src', /\.(?:ts|md)$/).flatMap(cited);
  expect(names.length).toBeGreaterThan(50);
  const exists = (name: string): boolean => name.split('…').every((part) => fixtures.includes(part.trim()));
  expect(names.filter((name) => !exists(name))).toEqual([]);
});
