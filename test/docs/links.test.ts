import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { documents, readDocument } from '../support/markdown.js';

/** Returns the GitHub anchors of all headings in a document. */
const anchorsOf = (path: string): string[] =>
  [...readFileSync(path, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

/** Returns the relative links and images of a document. */
const linksOf = (path: string): string[] =>
  [...readDocument(path).matchAll(/\]\(([^)\s]+)\)|src="([^"]+)"/g)]
    .map(([, link, image]) => link ?? image ?? '')
    .filter((link) => !/^[a-z]+:/.test(link));

function isBroken(from: string, link: string): boolean {
  const [file = '', anchor] = link.split('#');
  const path = file === '' ? from : join(dirname(from), file);
  return !existsSync(path) || (anchor !== undefined && !anchorsOf(path).includes(anchor));
}

describe('documents', () => {
  it.each(documents())('have no broken links: %s', (path) => {
    expect(linksOf(path).filter((link) => isBroken(path, link))).toEqual([]);
  });

  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  })
    .trim()
    .split('\n');
  const readmes = documents().filter((path) => /^src\/.*README\.md$/.test(path));

  it.each(readmes)('name only existing files: %s', (path) => {
    const named = [...readDocument(path).matchAll(/`([\w./-]+\.(?:ts|js|cjs|pml))`/g)].map(
      ([, name = '']) => name,
    );
    const isFile = (name: string): boolean =>
      files.some((file) => `/${file}`.endsWith(`/${name.replace('../', '')}`));
    expect(named.filter((name) => !isFile(name))).toEqual([]);
  });

  const SPECIFICATION = 'src/cache/coherence/README.md';

  it.each(readmes.filter((path) => path !== SPECIFICATION))(
    'have at most 80 lines besides the table of files: %s',
    (path) => {
      const lines = readDocument(path).trimEnd().split('\n');
      expect(lines.filter((line) => !/^\| \[[^\]]+\.ts\]/.test(line)).length).toBeLessThanOrEqual(80);
    },
  );

  it('include a root README of at most 150 lines, and a guide of at most 15 KB', () => {
    expect(readDocument('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(150);
    expect(Buffer.byteLength(readDocument('config/README.md'))).toBeLessThanOrEqual(15_000);
  });

  const { files: entries } = JSON.parse(readDocument('package.json')) as { files: string[] };
  const isPacked = (path: string): boolean =>
    ['README.md', 'LICENSE', 'package.json'].includes(path) ||
    entries.some(
      (entry) =>
        path === entry ||
        path.startsWith(`${entry}/`) ||
        (entry === 'config/*.md' && dirname(path) === 'config' && path.endsWith('.md')),
    );
  const packed = files.filter(isPacked);

  it.each(packed.filter((path) => path.endsWith('.md')))(
    'of the package link to its files only: %s',
    (path) => {
      const outside = linksOf(path)
        .filter((link) => !link.startsWith('#'))
        .map((link) => join(dirname(path), link.replace(/#.*$/, '')))
        .filter((target) => !packed.some((file) => file === target || file.startsWith(`${target}/`)));
      expect(outside).toEqual([]);
    },
  );
});
