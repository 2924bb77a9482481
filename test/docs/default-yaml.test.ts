import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseDocument, visit, type Document } from 'yaml';
import { configKeys } from '../../src/app/config.js';
import { configFrom } from '../support/load-config.js';

const yaml = readFileSync(new URL('../../config/default.yaml', import.meta.url), 'utf8');

/** Returns each key of the file with the comment above it. */
function commentedKeys(document: Document): { key: string; value: unknown; comment: string }[] {
  const found: { key: string; value: unknown; comment: string }[] = [];
  visit(document, {
    Pair(_, pair, path) {
      const { key, value } = pair as {
        key: { value: string; commentBefore?: string };
        value: { value: unknown };
      };
      if (!('value' in value)) return;
      const outer = path.flatMap((node) => ('key' in node ? [(node.key as { value: string }).value] : []));
      const map = path.at(-1) as { commentBefore?: string };
      const comment = key.commentBefore ?? map.commentBefore ?? '';
      found.push({ key: [...outer, key.value].join('.'), value: value.value, comment });
    },
  });
  return found;
}

const commented = commentedKeys(parseDocument(yaml));

describe('config/default.yaml', () => {
  it('parses to exactly the defaults', () => {
    expect(configFrom({ yaml })).toEqual(configFrom({}));
  });

  it('names first ten keys that most files set', () => {
    const named = [...yaml.matchAll(/^# {3}([a-z]\S+) {2,}[a-z]/gim)].map(([, key]) => key);
    expect(named).toHaveLength(10);
    expect(configKeys().map(({ key }) => key)).toEqual(expect.arrayContaining(named));
  });

  it('contains every key in schema order with its default', () => {
    expect(commented.map(({ key, value }) => ({ key, value }))).toEqual(
      configKeys().map(({ key, byDefault }) => ({ key, value: byDefault })),
    );
  });

  it.each(configKeys())(
    'describes $key and names the variable $variable',
    ({ key, variable, description, isReloadable }) => {
      const comment = commented.find((entry) => entry.key === key)?.comment ?? '';
      const words = comment.replaceAll(/\s+/g, ' ').trim();
      expect(words).toBe(`${description} Variable: ${variable}${isReloadable ? '; reloadable' : ''}`);
    },
  );
});
