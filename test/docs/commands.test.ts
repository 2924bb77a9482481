// Every documented command is run by a test, or listed here with the reason why none runs it.
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { documents, readDocument, shellBlocks } from '../support/markdown.js';

/** Maps a document and the start of a block to the test that runs it, or to the reason why none does. */
const CLAIMS: [document: string, begins: string, claim: { by: string } | { reason: string }][] = [
  ['README.md', 'npm ci && npm run demo', { by: 'test/live/readme-commands.test.ts' }],
  ['README.md', 'curl -i http://127.0.0.1:8080/', { by: 'test/live/readme-commands.test.ts' }],
  ['README.md', 'npm ci && npm run build', { by: 'test/rollout/newcomer.test.ts' }],
  ['README.md', 'export UPSTREAM_FINGERPRINT', { by: 'test/rollout/newcomer.test.ts' }],
  ['CONTRIBUTING.md', 'npm ci\nnpm run lint', { reason: 'the whole check: .ci/run' }],
  ['config/command-line.md', 'handle-resolver-proxy serve', { by: 'test/cli/readme.test.ts' }],
  ['config/examples/several-instances.md', 'HTTP_SHARED_MAX_AGE', { by: 'test/rollout/varnish.test.ts' }],
  ['config/redirects.md', 'curl', { by: 'test/live/readme-commands.test.ts' }],
  ['config/api.md', 'curl', { by: 'test/live/readme-commands.test.ts' }],
  ['config/api.md', 'npx openapi-typescript', { by: 'test/openapi/client.test.ts' }],
  ['config/epic-v2.md', 'V2=', { by: 'test/live/readme-commands.test.ts' }],
  ['config/examples/before-a-handle-server.md', '', { by: 'test/rollout/newcomer.test.ts' }],
  ['config/examples/cut-over.md', 'handle-resolver-proxy', { by: 'test/cli/readme.test.ts' }],
  ['config/examples/dspace.md', '', { by: 'test/rollout/role-pages.test.ts' }],
  ['config/examples/java-handle-server.md', '', { by: 'test/rollout/role-pages.test.ts' }],
  ['config/examples/epic-service.md', '', { by: 'test/rollout/role-pages.test.ts' }],
  ['config/examples/own-cache.md', '', { by: 'test/rollout/role-pages.test.ts' }],
  ['config/examples/dead-handle-server.md', '', { by: 'test/rollout/dead-handle-server.test.ts' }],
  ['config/examples/database-writes.md', '', { by: 'test/rollout/database-writes.test.ts' }],
  ['config/examples/monitoring.md', '', { by: 'test/rollout/monitoring-probe.test.ts' }],
  [
    'config/examples/proxy-protocol.md',
    'export UPSTREAM_URL',
    { reason: 'the variables are those of the tests of this page' },
  ],
  ['config/examples/proxy-protocol.md', 'export PROXY=', { by: 'test/rollout/proxy-protocol.test.ts' }],
  ['config/examples/proxy-protocol.md', 'curl', { by: 'test/rollout/proxy-protocol.test.ts' }],
  ['config/examples/prefix-page.md', '', { by: 'test/rollout/prefix-page.test.ts' }],
  ['test/README.md', 'npm test', { reason: 'these are the tests' }],
  ['test/bench/README.md', 'npm run bench', { by: 'test/live/bench.test.ts' }],
];

const blocks = documents().flatMap((path) =>
  shellBlocks(readDocument(path)).map((block) => [path, block] as const),
);

describe('documented commands', () => {
  it.each(blocks)('are tested, or exempt for a stated reason: in %s, %j', (path, block) => {
    const claims = CLAIMS.filter(([document, begins]) => document === path && block.startsWith(begins));
    expect(claims).toHaveLength(1);
  });

  it.each(CLAIMS)('match the list of tested commands: in %s, %j', (path, begins, claim) => {
    const claimed = blocks.filter(([document, block]) => document === path && block.startsWith(begins));
    expect(claimed.length).toBeGreaterThan(0);
    if ('by' in claim) expect(existsSync(claim.by)).toBe(true);
  });

  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };

  it.each(documents())('include only existing npm scripts in %s', (path) => {
    const named = [...readDocument(path).matchAll(/npm run ([a-z][\w:]*)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});
