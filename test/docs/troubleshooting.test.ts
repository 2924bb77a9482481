// config/troubleshooting.md quotes existing messages, codes and keys, and covers every logged warning.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { allErrors } from '../../src/app/plugins.js';
import { readDocument } from '../support/markdown.js';

/** Matches `- **symptom** (log `message`; error `CODE`): cause and remedy`, up to the next entry or paragraph. */
const ENTRY = /^- \*\*((?:(?!\*\*)[^])+)\*\*(?: \(((?:`[^`]*`|[^`)])*)\))?:\s((?:(?!\n\n|\n- )[^])+)/gm;

const entries = [...readDocument('config/troubleshooting.md').matchAll(ENTRY)].map(
  ([, symptom = '', signs = '', remedy = '']) => ({ symptom, signs, remedy }),
);
const quotedIn = (texts: string[]): string[] =>
  texts.flatMap((text) =>
    [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted.replaceAll(/\n\s*/g, ' ')),
  );
const signs = quotedIn(entries.map((entry) => entry.signs));
const isCode = (text: string): boolean => /^(?:[A-Z0-9]+_[A-Z0-9_]+|OVERLOADED|INTERNAL)$/.test(text);
const messages = signs.filter((text) => !isCode(text));
const codes = signs.filter(isCode);

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => readFileSync(join('src', path), 'utf8'));

describe('config/troubleshooting.md', () => {
  it('is not empty', () => {
    expect(entries.length).toBeGreaterThan(70);
    expect(codes.length).toBeGreaterThan(20);
  });

  it.each([...new Set(messages)])('quotes text from the code: %j', (message) => {
    expect(sources.some((source) => source.includes(message))).toBe(true);
  });

  it.each([...new Set(codes)])('names only catalogued errors: %s', (code) => {
    expect(allErrors().map((error) => error.code)).toContain(code);
  });

  const keys = configKeys().map(({ key }) => key);
  const sections = new Set(keys.map((key) => key.split('.')[0]));
  const named = quotedIn(entries.flatMap(({ symptom, remedy }) => [symptom, remedy])).filter(
    (text) => /^\w+(\.\w+)+$/.test(text) && sections.has(text.split('.')[0]),
  );

  it.each([...new Set(named)])('names only existing keys: %s', (key) => {
    expect(keys).toContain(key);
  });

  const warnings = sources.flatMap((source) =>
    [...source.matchAll(/\blog(?:ger)?\.(?:warn|error|fatal)\(\s*(?:[^'`;]*?,\s*)?['`]([^'`]+)['`]/g)].map(
      ([, message = '']) => message,
    ),
  );

  it.each([...new Set(warnings)])('includes the warning %j', (message) => {
    expect(messages.includes(message), 'an entry `- **symptom** (log `message`): remedy`').toBe(true);
  });
});
