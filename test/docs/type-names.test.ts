// Type names are unique in src, so that a search finds one meaning.
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

/** Returns the files that declare each type name. */
function declarations(): Map<string, string[]> {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  const found = new Map<string, string[]>();
  for (const file of files) {
    const text = readFileSync(`src/${file}`, 'utf8');
    for (const [, name = ''] of text.matchAll(
      /^(?:export )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm,
    ))
      found.set(name, [...(found.get(name) ?? []), file]);
  }
  return found;
}

describe('type names', () => {
  test('are unique in src', () => {
    const repeated = [...declarations()].filter(([, files]) => files.length > 1);
    expect(Object.fromEntries(repeated)).toEqual({});
  });
});
