// The documents lead to files that exist, and the root README stays short.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { documents, readDocument } from '../support/markdown.js';

/** GitHub's anchors of the headings of a document. */
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

it.each(documents())('every link of %s leads somewhere', (path) => {
  const links = [...readDocument(path).matchAll(/\]\(([^)\s]+)\)|src="([^"]+)"/g)]
    .map(([, link, image]) => link ?? image ?? '')
    .filter((link) => !/^[a-z]+:/.test(link));
  expect(links.filter((link) => isBroken(path, link))).toEqual([]);
});

it('the root README has at most 200 lines', () => {
  expect(readDocument('README.md').split('\n').length).toBeLessThanOrEqual(200);
});
