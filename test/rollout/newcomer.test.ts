// "Before a Handle.Net server, step by step", walked line by line before a server with a self-signed certificate.
import '../support/real-sockets.js';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { startBuiltProxy } from '../support/built-proxy.js';

interface Step {
  commands: string;
  /** What is to be seen; `…` stands for anything. */
  shown: string | undefined;
}

const steps: Step[] = [
  ...exampleText('before-a-handle-server.md').matchAll(
    /^```sh\n([^]*?)^```\n(?:\n```text\n([^]*?)^```\n)?/gm,
  ),
].map(([, commands = '', shown]) => ({ commands, shown }));

const certificate = await createCertificate();
const demo = await startDemoServer({ tls: certificate });

/** Runs commands in a shell that remembers what was set before. */
function createShell(): (commands: string) => Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const memory = join(folder, 'set.sh');
  writeFileSync(memory, '');
  return (commands) =>
    new Promise((resolve) => {
      const script = `source ${memory}\n${commands}\n{ export -p; declare -f; } > ${memory}`;
      const child = spawn('bash', ['--norc', '--noprofile', '-c', script], {
        env: { PATH: process.env['PATH'] ?? '' },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => (output += text));
      }
      child.once('close', () => {
        resolve(output);
      });
    });
}

const pattern = (shown: string): RegExp =>
  new RegExp(
    `^\\s*${shown
      .trim()
      .split('\n')
      .map((line) => line.split('…').map(escape).join('.*'))
      .join('\\s*')}\\s*$`,
  );

const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

test('a newcomer sees at every step what the page shows', async () => {
  const here = {
    HANDLE_SERVER: demo.url,
    HANDLE: '21.T11998/page',
    LOGIN: '300%3A21.T11998/USER01:password',
  };
  const proxy = await startBuiltProxy({
    UPSTREAM_URL: demo.url,
    UPSTREAM_FINGERPRINT: certificate.fingerprint,
  });
  const shell = createShell();
  for (const { commands, shown } of steps) {
    if (commands.includes('npm start')) {
      // It is started already, with the fingerprint that the page's own command found.
      expect(await shell('echo $FINGERPRINT')).toBe(`${certificate.fingerprint}\n`);
      continue;
    }
    const said = await shell(commands.replace('http://localhost:9090', proxy.adminUrl));
    if (shown !== undefined) expect(said, commands).toMatch(pattern(shown));
    if (commands.includes('export HANDLE_SERVER=')) {
      const set = Object.entries({ ...here, PROXY: proxy.url }).map(
        ([name, value]) => `export ${name}=${value}`,
      );
      await shell(set.join('\n'));
    }
  }
  expect(steps.filter(({ shown }) => shown !== undefined).length).toBeGreaterThan(8);
});

test('without the fingerprint the proxy logs the cause and the remedy that the page explains', async () => {
  const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
  const answer = await fetch(`${proxy.url}/api/handles/21.T11998/abc`);
  expect(answer.status).toBe(502);
  const logged = (): unknown => proxy.logs().find(({ msg }) => msg === 'server is failing');
  await expect.poll(logged).toMatchObject({
    cause: expect.stringContaining('SELF_SIGNED_CERT') as string,
    remedy: 'set upstream.caFile or upstream.fingerprint',
  });
  expect(exampleText('before-a-handle-server.md')).toContain('SELF_SIGNED_CERT');
});
