// Reads tables of the documents, to compare them with the code.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** The text of a document, by its path from the root. */
export const readDocument = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** All documents of the repository. */
export const documents = (): string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
    .filter((path) => existsSync(path));

/** The blocks of shell commands of a document. */
export const shellBlocks = (markdown: string): string[] =>
  [...markdown.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);

/** The rows of all tables whose heading row starts with these cells. */
export function tableRows(markdown: string, heading: string): string[] {
  const lines = markdown.split('\n');
  return lines.flatMap((line, at) => {
    if (!line.startsWith(heading)) return [];
    const rest = lines.slice(at + 2);
    const end = rest.findIndex((row) => !row.startsWith('|'));
    return end === -1 ? rest : rest.slice(0, end);
  });
}

/** The cells of a row, with single spaces. */
export const cells = (row: string): string[] =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll(/\s+/g, ' '));
