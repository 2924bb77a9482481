// Runs the commands in config/command-line.md and config/examples/cut-over.md, and calls in config/admin.md.
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DEMO_PASSWORD } from '../../src/dev-server/seed.js';
import { encodePublicKey } from '../../src/handle/value-data.js';
import { ROOT, follow } from '../support/built-proxy.js';
import { readDocument, shellBlocks } from '../support/markdown.js';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';

const demo = await startDemoServer();
const ENABLED = { CHANGES_ENABLED: 'true', REPORTS_ENABLED: 'true' };

const PUBLIC_KEY = encodePublicKey(
  generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
);

/** Commands except `serve` and `dev-server`, which other tests start. */
const commands = ['config/command-line.md', 'config/examples/cut-over.md']
  .flatMap((path) => shellBlocks(readDocument(path)))
  .flatMap((block) => block.split('\n'))
  .map((line) => line.replace(/ # .*$/, '').trim())
  .filter((line) => line.includes('handle-resolver-proxy') && !/ (?:serve$|dev-server )/.test(line));

/** Matches of admin calls: whole text, method, path and body. */
const calls = [
  ...readDocument('config/admin.md').matchAll(/`(GET|POST|PUT) (\/[^ `]*)(?: (\{.*?\}))?`/g),
].map((found) => [...found]);

/** Replaces a remote server, an endless command and a long duration. */
const adapted = (line: string): string =>
  line
    .replace('https://handle.example.org:8000', demo.url)
    .replace('http://127.0.0.1:8000', demo.url)
    .replace(/--watch$/, '--watch | head -3')
    .replace('--duration 5', '--duration 1');

/** Creates a folder with the installed command and the files that the commands name. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'proxy-readme-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true });
  });
  writeFileSync(join(path, 'handles.txt'), '21.T11998/demo\n21.T11998/page\n');
  const times = { requestedAt: '2026-11-21', staleAt: '2026-11-22', deleteAt: '2126-11-22' };
  writeFileSync(
    join(path, '21.T11998.ndjson.gz'),
    JSON.stringify({ handle: '21.T11998/x', ...times, values: [] }),
  );
  writeFileSync(join(path, 'handles.csv'), 'handle,idx,type,data,pub_read\n21.T11998/x,1,URL,0x78,1\n');
  writeFileSync(join(path, 'password'), DEMO_PASSWORD);
  writeFileSync(join(path, 'proxy.yaml'), 'native: { site: { address: 192.0.2.7 } }\n');
  mkdirSync(join(path, 'svr_1'));
  for (const name of ['pubkey.bin', 'admpub.bin']) writeFileSync(join(path, 'svr_1', name), PUBLIC_KEY);
  const shim = `#!/bin/sh\nexec '${process.execPath}' '${join(ROOT, 'dist/main.js')}' "$@"\n`;
  writeFileSync(join(path, 'handle-resolver-proxy'), shim, { mode: 0o755 });
  return path;
}

describe('documented command or admin call', () => {
  test.each(commands)('exits successfully: %s', async (command) => {
    const cwd = folder();
    const { place } = await startOperated(demo.url, ENABLED);
    const env = { PATH: `${cwd}:${process.env['PATH'] ?? ''}`, UPSTREAM_URL: demo.url, ...place };
    const args = ['--norc', '-c', `set -o pipefail; ${adapted(command)}`];
    const { exited, stderr } = follow(spawn('bash', args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] }));
    const { code } = await exited;
    expect(code, stderr()).toBe(0);
  });

  test('exists in the READMEs', () => {
    expect(commands.length).toBeGreaterThan(8);
    expect(calls.length).toBeGreaterThan(6);
  });

  test.each(calls)('returns 200: %s', async (_call, method = '', path = '', body?: string) => {
    const { ADMIN_URL } = (await startOperated(demo.url, ENABLED)).place;
    const answer = await fetch(ADMIN_URL + path, { method, ...(body !== undefined && { body }) });
    expect(answer.status).toBe(200);
    // Event streams never end.
    await answer.body?.cancel();
  });
});
