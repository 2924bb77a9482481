// config/troubleshooting.md quotes existing messages, codes and keys, and covers every logged warning.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { allErrors } from '../../src/app/plugins.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

const rows = tableRows(readDocument('config/troubleshooting.md'), '| symptom').map(cells);
const quoted = (column: number): string[] =>
  rows.flatMap((row) => [...(row[column] ?? '').matchAll(/`([^`]+)`/g)].map(([, text = '']) => text));

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => readFileSync(join('src', path), 'utf8'));

describe('config/troubleshooting.md', () => {
  it('is not empty', () => {
    expect(rows.length).toBeGreaterThan(20);
  });

  it.each([...new Set(quoted(1))])('quotes text from the code: %j', (message) => {
    expect(sources.some((source) => source.includes(message))).toBe(true);
  });

  it.each([...new Set(quoted(2))])('names only catalogued errors: %s', (code) => {
    expect(allErrors().map((error) => error.code)).toContain(code);
  });

  const keys = configKeys().map(({ key }) => key);
  const sections = new Set(keys.map((key) => key.split('.')[0]));
  const named = [...quoted(0), ...quoted(3)].filter(
    (text) => /^\w+(\.\w+)+$/.test(text) && sections.has(text.split('.')[0]),
  );

  it.each([...new Set(named)])('names only existing keys: %s', (key) => {
    expect(keys).toContain(key);
  });

  const warnings = sources.flatMap((source) =>
    [...source.matchAll(/logger\.(?:warn|error|fatal)\(\s*(?:[^'`;]*?,\s*)?['`]([^'`]+)['`]/g)].map(
      ([, message = '']) => message,
    ),
  );

  it.each([...new Set(warnings)])('includes the warning %j', (message) => {
    expect(quoted(1)).toContain(message);
  });
});
