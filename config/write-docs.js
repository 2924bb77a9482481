// `npm run docs`: writes config/default.yaml, config/keys.md, the manual page, the completion scripts, the Helm chart,
// the tables of metrics, errors, modules and files, and the error codes of the OpenAPI documents. Tests fail if these
// files are out of date.
import { readFileSync, writeFileSync } from 'node:fs';
import { createViteServer } from 'vitest/node';
import { completionScripts } from './completion.js';
import { chartFiles } from './helm-chart.js';
import { keyReference } from './key-reference.js';
import { manPage } from './man-page.js';
import { fileRows, moduleRows, readmes } from './module-table.js';
import { errorRows, metricRows } from './table-rows.js';

const sources = await createViteServer({
  configFile: false,
  server: { middlewareMode: true, watch: null, ws: false },
});
const { configKeys } = await sources.ssrLoadModule('/src/app/config.ts');
const { allErrors, allMetrics } = await sources.ssrLoadModule('/src/app/plugins.ts');
const { createProgram } = await sources.ssrLoadModule('/src/cli/program.ts');
await sources.close();

const LINE_LENGTH = 110;

const MANUAL_HEAD = `# Every configuration key with its default. The variable CONFIG names your own file, which needs only the keys
# that differ. The variable above a key takes precedence over the file. Write durations as 250ms, 60s, 5m, 24h or
# 7d, and sizes as 8KiB, 256MiB or 1GiB. SIGHUP applies changes to keys marked "reloadable"; other keys need a
# restart.
#
# Most files set some of these ten keys:
#   upstream.url          address of the Handle server
#   upstream.fingerprint  its certificate, if it is self-signed
#   http.trustedProxies   reverse proxies in front
#   redis.url             cache shared by several instances
#   cache.maxBytes        memory for records
#   cache.found.maxTtl    maximum age of a record
#   cache.snapshot.file   records survive a restart
#   deletion.allowedFor   handles that may be deleted
#   native.tcp.port       native Handle protocol
#   admin.token           metrics and purge from another machine
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

/** Writes a YAML scalar, quoted if YAML would otherwise read a different type. */
function scalar(value) {
  if (typeof value !== 'string' || /^[a-z][\w. /-]*$/i.test(value) || /^\d+(\.\d+)*[a-z]+$/i.test(value))
    return value;
  return /^\d+\.\d+\.\d+\.\d+$/.test(value) ? value : `'${value}'`;
}

function manual() {
  const lines = [MANUAL_HEAD];
  let open = [];
  for (const { key, variable, byDefault, description, isReloadable } of configKeys()) {
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
      ...wrap(description, indent),
      `${indent}# Variable: ${variable}${isReloadable ? '; reloadable' : ''}`,
      `${indent}${name}: ${scalar(byDefault)}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

/** Replaces the rows of the table with the given heading in its first column. */
function replaceTable(name, heading, rows) {
  const file = path(name);
  const lines = readFileSync(file, 'utf8').split('\n');
  const head = lines.findIndex((line) => new RegExp(`^\\| ${heading}\\s+\\|`).test(line));
  if (head < 0) throw new Error(`${name} has no table of "${heading}"`);
  let end = head + 2;
  while (lines[end]?.startsWith('|')) end++;
  lines.splice(head + 2, end - head - 2, ...rows);
  writeFileSync(file, lines.join('\n'));
}

/** Replaces the error codes of an OpenAPI document. */
function replaceErrorCodes(name, errors) {
  const file = path(name);
  const codes = errors.map(({ code }) => `        - ${code}\n`).join('');
  const list = /(?<=^ {4}ErrorCode:\n {6}type: string\n {6}enum:\n)(?: {8}- .*\n)+/m;
  const text = readFileSync(file, 'utf8');
  if (!list.test(text)) throw new Error(`${name} has no list of error codes`);
  writeFileSync(file, text.replace(list, codes));
}

const path = (name) => new URL(`../${name}`, import.meta.url);

writeFileSync(path('config/default.yaml'), manual());
writeFileSync(path('config/man/handle-resolver-proxy.1'), manPage(createProgram()));
for (const [name, text] of Object.entries(chartFiles(JSON.parse(readFileSync(path('package.json'), 'utf8')))))
  writeFileSync(path(`config/helm/${name}`), text);
writeFileSync(path('config/keys.md'), keyReference(configKeys()));
for (const [shell, script] of Object.entries(completionScripts(createProgram())))
  writeFileSync(path(`config/completion/handle-resolver-proxy.${shell}`), script);
for (const name of ['admin', 'public']) replaceErrorCodes(`config/openapi/${name}.yaml`, allErrors());
replaceTable('config/metrics.md', 'name', metricRows(allMetrics()));
replaceTable('config/troubleshooting.md', 'code', errorRows(allErrors()));
replaceTable('CONTRIBUTING.md', 'module', moduleRows());
for (const readme of readmes())
  if (/^\| file +\|/m.test(readFileSync(path(`src/${readme}`), 'utf8')))
    replaceTable(`src/${readme}`, 'file', fileRows(readme));
