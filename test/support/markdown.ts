// Reads tables in documents, to compare them with the code.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** Returns a document's text by its path from the root. */
export const readDocument = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Returns the paths of all documents in the repository. */
export const documents = (): string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
    .filter((path) => existsSync(path));

/** Returns a document's blocks of shell commands. */
export const shellBlocks = (markdown: string): string[] =>
  [...markdown.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = '']) => block);

/** Returns the rows of all tables whose heading row starts with `heading`. */
export function tableRows(markdown: string, heading: string): string[] {
  const lines = markdown.split('\n');
  return lines.flatMap((line, at) => {
    if (!line.startsWith(heading)) return [];
    const rest = lines.slice(at + 2);
    const end = rest.findIndex((row) => !row.startsWith('|'));
    return end === -1 ? rest : rest.slice(0, end);
  });
}

/** Returns a row's cells, with runs of spaces collapsed. */
export const cells = (row: string): string[] =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll(/\s+/g, ' '));
