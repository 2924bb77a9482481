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

function isBroken(from: string, link: string): boolean {
  const [file = '', anchor] = link.split('#');
  const path = file === '' ? from : join(dirname(from), file);
  return !existsSync(path) || (anchor !== undefined && !anchorsOf(path).includes(anchor));
}

describe('documents', () => {
  it.each(documents())('have no broken links: %s', (path) => {
    const links = [...readDocument(path).matchAll(/\]\(([^)\s]+)\)|src="([^"]+)"/g)]
      .map(([, link, image]) => link ?? image ?? '')
      .filter((link) => !/^[a-z]+:/.test(link));
    expect(links.filter((link) => isBroken(path, link))).toEqual([]);
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
    'have 20 to 80 lines besides the table of files: %s',
    (path) => {
      const lines = readDocument(path).trimEnd().split('\n');
      const written = lines.filter((line) => !/^\| \[[^\]]+\.ts\]/.test(line)).length;
      expect(lines.length).toBeGreaterThanOrEqual(20);
      expect(written).toBeLessThanOrEqual(80);
    },
  );

  it('include a root README of at most 200 lines', () => {
    expect(readDocument('README.md').split('\n').length).toBeLessThanOrEqual(200);
  });
});
