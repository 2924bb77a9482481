// The smallest plugin in CONTRIBUTING.md works.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createConfigLoader } from '../../src/config/load.js';
import { SECTIONS, rules } from '../../src/config/schema.js';
import { createLogger } from '../../src/observe/logger.js';
import { unknown } from '../support/example-plugin.js';
import { readDocument } from '../support/markdown.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { UPSTREAM_URL, mockUpstream, notFound } from '../support/upstream.js';

useNock();

describe('the plugin in CONTRIBUTING.md', () => {
  it('equals the plugin that these tests start', () => {
    const source = readFileSync(new URL('../support/example-plugin.ts', import.meta.url), 'utf8');
    const inItsFolder = source.replaceAll("'../../src/", "'../../");
    const [, shown] = /```ts\n(\/\/ Logs reads[^]*?)```/.exec(readDocument('CONTRIBUTING.md')) ?? [];
    expect(shown).toBe(inItsFolder);
  });

  it('has a key that only it declares', () => {
    const { configKeys, loadConfig } = createConfigLoader([{ sections: SECTIONS, rules }, unknown]);
    const config = loadConfig({ env: { UPSTREAM_URL, UNKNOWN_LOG: 'true' }, readFile: () => '' });
    expect(config).toMatchObject({ unknown: { log: true } });
    expect(configKeys().at(-1)).toMatchObject({ key: 'unknown.log', variable: 'UNKNOWN_LOG' });
  });

  it('logs a read of a handle that does not exist', async () => {
    mockUpstream(notFound('21.T1/none'));
    const lines: string[] = [];
    const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
    const on = { ...unknown, isEnabled: () => true };
    const proxy = await startProxy({ LOG_REQUESTS: 'none' }, { logger, plugins: [on] });
    await proxy.ask('/api/handles/21.T1/none');
    await expect.poll(() => lines.join('')).toContain('"handle":"21.T1/none","msg":"unknown handle"');
  });
});
