// Generates the module table in CONTRIBUTING.md, and the tables of files in the READMEs of src.
import { existsSync, readFileSync, readdirSync } from 'node:fs';

const src = new URL('../src/', import.meta.url);

/** Main files of modules without a README, if their name differs from the folder's. */
const MAIN = {};

/** @returns {string[]} */
export function moduleRows() {
  const entries = readdirSync(src, { withFileTypes: true }).sort((a, b) => a.name.localeCompare(b.name));
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const files = entries.filter(({ name }) => name.endsWith('.ts')).map(({ name }) => name);
  return [
    ...folders.map((name) => row(name, folderText(name))),
    ...files.map((name) => row(name, firstComment(name))),
  ];
}

/** Returns the READMEs of src, by their paths below it. @returns {string[]} */
export const readmes = () =>
  readdirSync(src, { recursive: true }).filter((path) => path.endsWith('/README.md'));

/** Returns a row for each file that a README describes. @returns {string[]} */
export function fileRows(readme) {
  const folder = readme.slice(0, -'README.md'.length);
  const below = readdirSync(new URL(folder, src), { recursive: true }).sort();
  const owned = below
    .filter((path) => path.endsWith('/README.md'))
    .map((path) => path.slice(0, -'README.md'.length));
  return below
    .filter((path) => path.endsWith('.ts') && !owned.some((other) => path.startsWith(other)))
    .map(
      (path) => `| [${path}](${path}) | ${firstSentence(firstComment(folder + path)).replace(/\.$/, '')} |`,
    );
}

const row = (name, text) => `| [src/${name}](src/${name}) | ${firstSentence(text)} |`;

function folderText(name) {
  const readme = new URL(`${name}/README.md`, src);
  if (!existsSync(readme)) return firstComment(`${name}/${MAIN[name] ?? name}.ts`);
  const [, paragraph = ''] = /^# .+\n\n([^]*?)\n\n/.exec(readFileSync(readme, 'utf8')) ?? [];
  return paragraph.replaceAll('\n', ' ');
}

const firstComment = (path) =>
  (
    /^(?:#!.*\n)?\/\/ (.*(?:\n\/\/ .*)*)/.exec(readFileSync(new URL(path, src), 'utf8'))?.[1] ?? ''
  ).replaceAll('\n// ', ' ');

/** Returns the text up to the first full stop that ends a word. */
const firstSentence = (text) => /^.*?\.(?= |$)/.exec(text)?.[0] ?? text;
