// config/keys.md and the key table in README.md match the schema, and every configuration in a document is valid.
import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { type ConfigKey, valueAt } from '../../src/config/keys.js';
import { configFrom } from '../support/load-config.js';
import { cells, documents, readDocument, tableRows } from '../support/markdown.js';

const { keyReference } = (await import(new URL('../../config/key-reference.js', import.meta.url).href)) as {
  keyReference: (keys: readonly ConfigKey[]) => string;
};
const { keyRow } = (await import(new URL('../../config/table-rows.js', import.meta.url).href)) as {
  keyRow: (key: ConfigKey) => string;
};

describe('documented configuration keys', () => {
  it('are all in config/keys.md, with variable, default and description (`npm run docs` writes it)', () => {
    const listed = tableRows(readDocument('config/keys.md'), '| key').map(cells);
    expect(listed).toEqual(configKeys().map(keyRow).map(cells));
    expect(readDocument('config/keys.md')).toBe(keyReference(configKeys()));
  });

  it('have every default that is no empty list', () => {
    const config = configFrom({});
    const hidden = configKeys().filter(({ byDefault, parsedPath }) => {
      const value = valueAt(config, parsedPath) ?? [];
      return byDefault === null && !(Array.isArray(value) && value.length === 0);
    });
    expect(
      hidden.map(({ key }) => key),
      'give the default with prefault, as the file has it',
    ).toEqual([]);
  });

  it('name sections that a document has', () => {
    const headings = new Set(
      documents().flatMap((path) =>
        [...readDocument(path).matchAll(/^#+ (.+)$/gm)].map(([, title]) => title),
      ),
    );
    const named = configKeys().flatMap(({ key, description }) =>
      [...description.matchAll(/(?:[Ss]ee|section) "([^"]+)"/g)].map(([, title = '']) => ({ key, title })),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(({ title }) => !headings.has(title))).toEqual([]);
  });

  it('match the variables and defaults in README.md', () => {
    const defaults = new Map(
      configKeys().map(({ variable, byDefault }) => [
        `\`${variable}\``,
        byDefault === null ? 'none' : `\`${byDefault}\``,
      ]),
    );
    const shown = tableRows(readDocument('README.md'), '| variable').map(cells);
    expect(shown).toHaveLength(10);
    for (const [variable = '', byDefault] of shown)
      expect([variable, byDefault]).toEqual([variable, defaults.get(variable)]);
  });

  const blocks = documents()
    .filter((path) => path !== 'CHANGELOG.md')
    .flatMap((path) =>
      [...readDocument(path).matchAll(/^```yaml\n([^]*?)^```$/gm)].map(
        ([, yaml = '']) => [path, yaml] as const,
      ),
    );

  it.each(blocks)('are accepted in an example of %s: %j', (_path, yaml) => {
    const fingerprint = Array(32).fill('AB').join(':');
    const whole = yaml.replace('AB:CD:…', fingerprint);
    const env = /^upstreams?:/m.test(whole) ? {} : { UPSTREAM_URL: 'https://handle.example.org:8000' };
    expect(() => configFrom({ yaml: whole, env })).not.toThrow();
  });
});
