// Reads tables of the documents, to compare them with the code.
import { readFileSync } from 'node:fs';

/** The text of a document, by its path from the root. */
export const readDocument = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

export const readme = (): string => readDocument('README.md');

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
