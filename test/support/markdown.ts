// Reads the tables of README.md, so that tests can hold it to the code.
import { readFileSync } from 'node:fs';

export const readme = (): string => readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

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
