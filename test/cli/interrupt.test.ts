// Ctrl-C of commands that wait for a response.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startProgram } from '../support/built-proxy.js';
import { startHostileServer } from '../support/hostile-server.js';
import { recordLine } from '../support/record-files.js';
import { newFolder } from '../support/folder.js';

/** Interrupts a command once a server that never responds has its request. */
async function interrupt(args: string[]) {
  let isAsked = false;
  const server = await startHostileServer(() => {
    isAsked = true;
  });
  const { child, exited, stdout, stderr } = startProgram(['dist/main.js', ...args], {
    PROXY_URL: server,
    ADMIN_URL: server,
  });
  await expect.poll(() => isAsked).toBe(true);
  child.kill('SIGINT');
  const { code } = await exited;
  return { code, stdout: stdout(), stderr: stderr() };
}

function fileWith(line: string): string {
  const file = join(newFolder(), 'input');
  writeFileSync(file, `${line}\n`);
  return file;
}

describe('Ctrl-C during a request', () => {
  test('ends stats --watch without a failure', async () => {
    expect(await interrupt(['stats', '--watch'])).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  test('ends import, which states where to continue', async () => {
    expect(await interrupt(['import', fileWith(recordLine('21.T1/a'))])).toEqual({
      code: 1,
      stdout: '0 imported, 0 skipped\n',
      stderr: expect.stringContaining('interrupted; continue with --skip 0\n') as string,
    });
  });

  test('ends warm, which counts the handle as left instead of failed', async () => {
    expect(await interrupt(['warm', fileWith('21.T1/a')])).toEqual({
      code: 1,
      stdout: '0 warmed, 0 not found, 0 failed, 0 not due; 1 left\n',
      stderr: expect.stringContaining('interrupted; run the same command to resume') as string,
    });
  });
});
