// Counts that keep the source readable: files of a module, floors of modules, selected types, names that mean one thing.
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) =>
  path.endsWith('.ts'),
);
const textOf = (path: string): string => readFileSync(join('src', path), 'utf8');

test('no folder has more than 20 files', () => {
  const count = (folder: string): number => files.filter((path) => dirname(path) === folder).length;
  const folders = [...new Set(files.map((path) => dirname(path)))];
  expect(folders.filter((folder) => count(folder) > 20)).toEqual([]);
});

test('no file has more than 450 lines', () => {
  expect(files.filter((path) => textOf(path).split('\n').length > 451)).toEqual([]);
});

const IMPORTED = /^(?:import|export) (?!type\b)([^;]*?) from '(\.[^']+)';|\bimport\('(\.[^']+)'\)/gm;

/** Returns a folder of src, or a file at its top. */
const moduleOf = (path: string): string => path.split('/')[0] ?? '';

/** Returns the modules that the files of each module import for more than types. */
function importsByModule(): Map<string, Set<string>> {
  const imports = new Map<string, Set<string>>(files.map((path) => [moduleOf(path), new Set()]));
  for (const path of files)
    for (const [, names = '', given, loaded = ''] of textOf(path).matchAll(IMPORTED)) {
      const isTypes =
        names !== '' &&
        names
          .replace(/[{}]/g, '')
          .split(',')
          .every((name) => /^\s*(?:type |$)/.test(name));
      if (!isTypes)
        imports
          .get(moduleOf(path))
          ?.add(moduleOf(join(dirname(path), given ?? loaded).replace(/\.js$/, '.ts')));
    }
  return imports;
}

test('modules form at most ten floors, without a cycle', () => {
  const imports = importsByModule();
  const floorOf = (name: string, above: readonly string[] = []): number => {
    expect(above).not.toContain(name);
    const below = [...(imports.get(name) ?? [])].filter((other) => other !== name);
    return 1 + Math.max(0, ...below.map((other) => floorOf(other, [...above, name])));
  };
  const floors = [...imports.keys()].map((name) => floorOf(name));
  expect(Math.max(...floors)).toBeLessThanOrEqual(10);
});

test('types are rarely selections of other types', () => {
  const selections = files.flatMap((path) => textOf(path).match(/\b(?:Pick|Omit)</g) ?? []);
  expect(selections.length).toBeLessThanOrEqual(20);
});

const DECLARED = /^(?:export )?(?:async )?(?:function\*? (\w+)|const (\w+) =\s*(?:async )?(?:<[^=]*>)?\()/gm;

test('a function name means one thing, except the start of a plugin', () => {
  const places = new Map<string, Set<string>>();
  for (const path of files)
    for (const [, name, constant] of textOf(path).matchAll(DECLARED)) {
      const key = name ?? constant ?? '';
      places.set(key, (places.get(key) ?? new Set()).add(path));
    }
  const shared = [...places].filter(([name, paths]) => paths.size > 1 && name !== 'start');
  // The files are named, so that a failure says where the other function is.
  expect(shared.map(([name, paths]) => `${name}: ${[...paths].join(', ')}`)).toEqual([]);
});
