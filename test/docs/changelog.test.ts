import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { type ConfigKey } from '../../src/config/keys.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

type Default = ConfigKey['byDefault'] | undefined;

interface Versioned {
  version: string;
}

const { version } = JSON.parse(readDocument('package.json')) as Versioned;
const lock = JSON.parse(readDocument('package-lock.json')) as Versioned & { packages: { '': Versioned } };
const changelog = readDocument('CHANGELOG.md');
const releases = changelog.split(/^## /m).slice(1);
const [newest = ''] = releases.filter((release) => !/^\S+ \(unreleased\)\n/.test(release));

const defaultsBefore = JSON.parse(readDocument('test/fixtures/defaults-0.3.0.json')) as Record<
  string,
  Default
>;

const shown = (value: Default): string =>
  value === undefined ? '–' : value === null ? 'none' : `\`${value}\``;

describe('CHANGELOG.md', () => {
  it('starts with the version in package.json and package-lock.json', () => {
    expect([lock.version, lock.packages[''].version]).toEqual([version, version]);
    expect(newest.split('\n')[0]).toMatch(
      new RegExp(`^${version.replaceAll('.', '\\.')} – \\d{4}-\\d\\d-\\d\\d$`),
    );
  });

  it('contains the same sections in the same order for every version', () => {
    const order = ['Upgrading', 'Added', 'Changed', 'Fixed', 'Security'];
    for (const release of releases) {
      const sections = [...release.matchAll(/^### (.*)$/gm)].map(([, name = '']) => name);
      expect(sections.length).toBeGreaterThan(0);
      expect(sections).toEqual(order.filter((name) => sections.includes(name)));
    }
  });

  it('names only keys that this version or 0.3.0 has', () => {
    const keys = new Set([...configKeys().map(({ key }) => key), ...Object.keys(defaultsBefore)]);
    const isKnown = (name: string): boolean =>
      [...keys].some((key) => key === name || key.startsWith(`${name}.`));
    const sections = [...new Set([...keys].map((key) => key.split('.')[0]))].join('|');
    const named = [
      ...(releases[0] ?? '').matchAll(new RegExp(`\`((?:${sections})(?:\\.[a-z]\\w*)+)\``, 'g')),
    ];
    expect(named.map(([, key = '']) => key).filter((key) => !isKnown(key))).toEqual([]);
  });

  it('lists every changed default under Upgrading', () => {
    const now = new Map(configKeys().map(({ key, byDefault }) => [key, byDefault]));
    const changed = Object.entries(defaultsBefore)
      .filter(([key, byDefault]) => now.get(key) !== byDefault)
      .map(([key, byDefault]) => [`\`${key}\``, shown(byDefault), shown(now.get(key))]);
    const [topmost = ''] = releases;
    const listed = tableRows(topmost, '| key').map((row) => cells(row).slice(0, 3));
    expect(listed.sort()).toEqual(changed.sort());
  });
});

describe('SECURITY.md', () => {
  it('supports the minor version in package.json', () => {
    const rows = tableRows(readDocument('SECURITY.md'), '| version').map(cells);
    expect(rows.map(([supported]) => supported)).toEqual([version.replace(/\.\d+$/, '.x'), 'older']);
  });
});
