// Writes what the documents repeat of the code: config/default.yaml and the tables of README.md. The tests
// in test/docs say whether it has to run: `npm run docs`.
import { readFileSync, writeFileSync } from 'node:fs';
import { configKeys, configRows } from '../dist/config/keys.js';
import { CATALOGUE } from '../dist/errors.js';
import { metricRows } from '../dist/observe/metric-list.js';

const LINE_LENGTH = 110;

const MANUAL_HEAD = `# Every key of the configuration at its default. Name a file of your own with the variable CONFIG; it needs
# only the keys that differ. The variable named above a key wins over the file. Durations are written 250ms,
# 60s, 5m, 24h or 7d; sizes 8KiB, 256MiB or 1GiB. On SIGHUP the file is read again: the keys that say so change at
# once, the others at the next start.
`;

function wrap(text, indent) {
  const lines = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= LINE_LENGTH)
      lines[lines.length - 1] += ` ${word}`;
    else lines.push(`${indent}# ${word}`);
  }
  return lines;
}

/** A value as YAML reads it back; what could be taken for something else is quoted. */
function scalar(value) {
  if (typeof value !== 'string' || /^[a-z][\w. /-]*$/i.test(value) || /^\d+(\.\d+)*[a-z]+$/i.test(value))
    return value;
  return /^\d+\.\d+\.\d+\.\d+$/.test(value) ? value : `'${value}'`;
}

function manual() {
  const lines = [MANUAL_HEAD];
  let open = [];
  for (const { key, variable, byDefault, meaning, isReloadable } of configKeys()) {
    const path = key.split('.');
    const name = path.pop();
    const shared = path.findIndex((part, at) => open[at] !== part);
    for (let at = shared < 0 ? path.length : shared; at < path.length; at++) {
      if (at === 0 && lines.length > 1) lines.push('');
      lines.push(`${'  '.repeat(at)}${path[at]}:`);
    }
    open = path;
    const indent = '  '.repeat(path.length);
    lines.push(
      ...wrap(meaning, indent),
      `${indent}# Variable: ${variable}${isReloadable ? '; read again on SIGHUP' : ''}`,
      `${indent}${name}: ${scalar(byDefault)}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

/** Puts the rows in the place of those of the table whose first column has this heading. */
function withTable(text, heading, rows) {
  const lines = text.split('\n');
  const head = lines.findIndex((line) => new RegExp(`^\\| ${heading}\\s+\\|`).test(line));
  if (head < 0) throw new Error(`README.md has no table of "${heading}"`);
  let end = head + 2;
  while (lines[end]?.startsWith('|')) end++;
  lines.splice(head + 2, end - head - 2, ...rows);
  return lines.join('\n');
}

const errorRows = Object.entries(CATALOGUE).map(
  ([code, { status, responseCode, title }]) => `| \`${code}\` | ${status} | ${responseCode} | ${title}. |`,
);
const path = (name) => new URL(`../${name}`, import.meta.url);
const tables = { key: configRows(), name: metricRows(), code: errorRows };
let readme = readFileSync(path('README.md'), 'utf8');
for (const [heading, rows] of Object.entries(tables)) readme = withTable(readme, heading, rows);
writeFileSync(path('README.md'), readme);
writeFileSync(path('config/default.yaml'), manual());
