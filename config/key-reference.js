// Generates config/keys.md: every key with its variable, default and description, by section.
import { keyRow } from './table-rows.js';

const HEAD = `# Keys

Written by \`npm run docs\` from the schema; the [guide](README.md) says how to set keys. A reloadable key is applied on SIGHUP, any
other at the next start.
`;

/** Pages about the keys of a section. */
const PAGES = {
  upstreams: 'examples/several-servers.md',
  redis: 'examples/several-instances.md',
  cache: 'examples/outages.md',
  deletion: 'README.md#deletion-is-off',
  v2: 'epic-v2.md',
  redirect: 'redirects.md',
  admin: 'admin.md',
  log: 'metrics.md#log',
  seed: 'examples/outages.md#without-a-handle-server',
  traffic: 'examples/traffic.md',
  audit: 'metrics.md#how-stale-the-cache-is',
  mirror: 'examples/outages.md#a-mirror-of-a-prefix',
  changes: 'changes.md',
  reports: 'examples/reports.md',
  prefixPages: 'examples/prefix-page.md',
  tracing: 'metrics.md#traces',
  signposting: 'examples/signposting.md',
  native: 'examples/native-protocol.md',
};

/**
 * @param {readonly import('../src/config/keys.js').ConfigKey[]} keys
 */
export function keyReference(keys) {
  const sections = [...new Set(keys.map(({ path }) => path[0]))];
  const links = sections.map((name) => `[${name}](#${name.toLowerCase()})`).join(' · ');
  return `${[HEAD, links, ...sections.map((name) => section(name, keys))].join('\n')}\n`;
}

function section(name, keys) {
  const page = PAGES[name] === undefined ? [] : [`More: [${PAGES[name]}](${PAGES[name]})`, ''];
  const rows = keys.filter(({ path }) => path[0] === name).map(keyRow);
  const head = ['| key | variable | default | meaning |', '| --- | --- | --- | --- |'];
  return [`\n## ${name}\n`, ...page, ...head, ...rows].join('\n');
}
