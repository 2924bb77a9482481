// Commands whose standard output or standard error has no reader, or no room.
import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../support/built-proxy.js';
import { freePort } from '../support/free-port.js';
import { newFolder } from '../support/folder.js';

const RECORD = '{"handle":"21.T1/A","values":[]}\n';

async function startExport(stdio: StdioOptions, more: string[] = []) {
  const headers = { 'Content-Type': 'application/x-ndjson' };
  const server = createServer((_req, res) => res.writeHead(200, headers).end(RECORD)).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
  });
  await once(server, 'listening');
  const admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const args = ['dist/main.js', 'export', '--prefix', '21.T1', '--admin', admin, ...more];
  const child = spawn(process.execPath, args, { cwd: ROOT, env: {}, stdio });
  return { child, ended: once(child, 'close') as Promise<[number | null]> };
}

describe('a command', () => {
  test('succeeds when the reader of its output has enough', async () => {
    const { child, ended } = await startExport('pipe');
    child.stdout?.destroy();
    expect((await ended)[0]).toBe(0);
  });

  test('fails when the reader of its output is gone, and its work has failed', async () => {
    const args = ['dist/main.js', 'bench', '21.T1/A', '--requests', '1'];
    const env = { PROXY_URL: `http://127.0.0.1:${await freePort()}` };
    const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: 'pipe' });
    child.stdout.destroy();
    expect((await once(child, 'close'))[0]).toBe(1);
  });

  test('does its work when the reader of its progress has enough', async () => {
    const output = join(newFolder(), 'records');
    const { child, ended } = await startExport('pipe', ['--output', output]);
    child.stderr?.destroy();
    expect((await ended)[0]).toBe(0);
    expect(readFileSync(output, 'utf8')).toBe(RECORD);
  });

  test.runIf(existsSync('/dev/full'))('says that its output has no room', async () => {
    const { child, ended } = await startExport(['ignore', openSync('/dev/full', 'w'), 'pipe']);
    const text = child.stderr?.setEncoding('utf8').toArray();
    expect((await ended)[0]).toBe(1);
    expect((await text)?.join('')).toContain('cannot write the output: ENOSPC: no space left on device');
  });
});
