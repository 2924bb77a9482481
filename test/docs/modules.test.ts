// The tables of modules and files in the documents are current, and dependency-cruiser has a rule for every module.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cells, readDocument, tableRows } from '../support/markdown.js';

const { fileRows, moduleRows, readmes } = (await import(
  new URL('../../config/module-table.js', import.meta.url).href
)) as {
  fileRows: (readme: string) => string[];
  moduleRows: () => string[];
  readmes: () => string[];
};
const { forbidden } = createRequire(import.meta.url)('../../config/dependency-cruiser.cjs') as {
  forbidden: { from: { path?: unknown } }[];
};

const words = new Set(
  readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.[jt]s$/.test(path))
    .flatMap((path) => readFileSync(join('src', path), 'utf8').match(/\w+/g) ?? []),
);

describe('documented modules', () => {
  it('include every module, with the first sentence of its README or main file', () => {
    const listed = tableRows(readDocument('CONTRIBUTING.md'), '| module').map(cells);
    expect(listed).toEqual(moduleRows().map(cells));
  });

  it('include every plugin, in a row of src/plugins/README.md', () => {
    const rows = tableRows(readDocument('src/plugins/README.md'), '| folder').map(cells);
    const listed = rows.map(([link = '']) => /^\[([\w-]+)\]/.exec(link)?.[1]);
    const folders = readdirSync('src/plugins', { withFileTypes: true }).filter((each) => each.isDirectory());
    expect(listed.sort()).toEqual(folders.map(({ name }) => name).sort());
  });

  it.each(readmes())('have a table of all their files, if any: src/%s', (readme) => {
    const listed = tableRows(readDocument(`src/${readme}`), '| file').map(cells);
    if (listed.length > 0) expect(listed).toEqual(fileRows(readme).map(cells));
  });

  it.each(readmes())('name only files that exist, a bare name one of their folder: src/%s', (readme) => {
    const folder = join('src', dirname(readme));
    const below = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const exists = (name: string): boolean =>
      below.some((path) => `/${path}`.endsWith(`/${name}`)) ||
      [folder, 'src', '.'].some((place) => existsSync(join(place, name)));
    // The target of a link is the name that counts, and each plugin has a `plugin.ts`.
    const text = readDocument(`src/${readme}`).replace(/\[[^\]]*\]\(|`plugin\.ts`/g, '');
    const named = text.match(/(?<![\w.*}/-])(?:\.\.?\/)*[\w-]+(?:\/[\w-]+)*\.ts\b/g) ?? [];
    expect(named.filter((name) => !exists(name))).toEqual([]);
  });

  it.each(readmes())('name only functions and members that exist: src/%s', (readme) => {
    const named = [...readDocument(`src/${readme}`).matchAll(/`([a-z]+[A-Z]\w*)`/g)];
    expect(named.flatMap(([, name = '']) => (words.has(name) ? [] : name))).toEqual([]);
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
