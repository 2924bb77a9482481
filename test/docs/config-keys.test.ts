// The key tables in config/README.md and README.md match the schema.
import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { rowOf } from '../../src/config/keys.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

describe('documented configuration keys', () => {
  it('include each key once, with its variable, default and description', () => {
    const listed = tableRows(readDocument('config/README.md'), '| key').map(cells);
    expect(listed).toEqual(configKeys().map(rowOf).map(cells));
  });

  it('match the variables and defaults in README.md', () => {
    const defaults = new Map(
      configKeys().map(({ variable, byDefault }) => [
        `\`${variable}\``,
        byDefault === null ? 'none' : `\`${byDefault}\``,
      ]),
    );
    const shown = tableRows(readDocument('README.md'), '| variable').map(cells);
    expect(shown.length).toBeGreaterThan(5);
    for (const [variable = '', byDefault] of shown)
      expect([variable, byDefault]).toEqual([variable, defaults.get(variable)]);
  });
});
