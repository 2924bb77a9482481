// Every command and every call that "Operate" in the README shows, as it stands there.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { DEMO_PASSWORD } from '../handle-server/seed.js';
import { ROOT, follow } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';

const demo = await startDemoServer();
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
const [operate = ''] = /^## Operate\n[^]*?(?=^## )/m.exec(readme) ?? [];

/** `serve` is started by other tests. */
const commands = [...operate.matchAll(/^```sh\n([^]*?)^```/gm)]
  .flatMap(([, block = '']) => block.split('\n'))
  .map((line) => line.replace(/ # .*$/, '').trim())
  .filter((line) => line.includes('handle-resolver-proxy') && !line.endsWith(' serve'));

/** Call, method, path and body. */
const calls = [...operate.matchAll(/`(GET|POST|PUT) (\/[^ `]+)(?: (\{.*?\}))?`/g)].map((found) => [...found]);

/** What a test cannot do: ask a server on the internet, watch for ever, take its time. */
const here = (line: string): string =>
  line
    .replace('https://handle.example.org:8000', demo.url)
    .replace(/--watch$/, '--watch | head -3')
    .replace('--duration 5', '--duration 1');

/** A folder with what the commands speak of, and the command itself as an installed package has it. */
function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'proxy-readme-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true });
  });
  writeFileSync(join(path, 'handles.txt'), '21.T11998/demo\n21.T11998/page\n');
  writeFileSync(join(path, 'password'), DEMO_PASSWORD);
  const shim = `#!/bin/sh\nexec '${process.execPath}' '${join(ROOT, 'dist/cli/main.js')}' "$@"\n`;
  writeFileSync(join(path, 'handle-resolver-proxy'), shim, { mode: 0o755 });
  return path;
}

test.each(commands)('%s', async (command) => {
  const cwd = folder();
  const env = { PATH: `${cwd}:${process.env['PATH'] ?? ''}`, ...(await startOperated(demo.url)).place };
  const args = ['--norc', '-c', `set -o pipefail; ${here(command)}`];
  const { exited, stderr } = follow(spawn('bash', args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] }));
  const { code } = await exited;
  expect(code, stderr()).toBe(0);
});

test('there are commands and calls to try', () => {
  expect(commands.length).toBeGreaterThan(8);
  expect(calls.length).toBeGreaterThan(6);
});

test.each(calls)('%s is answered', async (_call, method = '', path = '', body?: string) => {
  const { ADMIN_URL } = (await startOperated(demo.url)).place;
  const answer = await fetch(ADMIN_URL + path, { method, ...(body !== undefined && { body }) });
  expect(answer.status).toBe(200);
  // Some may never end.
  await answer.body?.cancel();
});
