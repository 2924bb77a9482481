// The module table in CONTRIBUTING.md is current, and dependency-cruiser has a rule for every module.
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { cells, readDocument, tableRows } from '../support/markdown.js';

const { moduleRows } = (await import(new URL('../../config/module-table.js', import.meta.url).href)) as {
  moduleRows: () => string[];
};
const { forbidden } = createRequire(import.meta.url)('../../config/dependency-cruiser.cjs') as {
  forbidden: { from: { path?: unknown } }[];
};

describe('documented modules', () => {
  it('include every module, with the first sentence of its README or main file', () => {
    const listed = tableRows(readDocument('CONTRIBUTING.md'), '| module').map(cells);
    expect(listed).toEqual(moduleRows().map(cells));
  });

  it.each(
    readdirSync('src', { withFileTypes: true })
      .filter(({ name }) => name !== 'README.md')
      .map((entry) => [entry.name, entry.isDirectory()] as const),
  )('have a dependency-cruiser rule each: src/%s', (name, isFolder) => {
    const from = isFolder ? `^src/${name}/` : `^src/${name.replace('.', '\\.')}$`;
    expect(forbidden.map((rule) => rule.from.path)).toContain(from);
  });
});
