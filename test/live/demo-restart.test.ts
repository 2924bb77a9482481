// The snapshot of `npm run demo`: it restores records after a restart, and is optional.
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startProgram } from '../support/built-proxy.js';
import { freePort } from '../support/free-port.js';

describe('snapshot of the demo', () => {
  test('restores a record after a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'demo-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const env = {
      ...{ PORT: '0', ADMIN_PORT: '0', NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' },
      HANDLE_SERVER_PORT: String(await freePort()),
      CACHE_SNAPSHOT_FILE: join(folder, 'snapshot'),
    };
    for (const count of [0, 1]) {
      const { child, exited, stdout } = startProgram(['dist-demo/main.js'], env);
      await expect.poll(stdout).toContain('Press Ctrl-C');
      const [url = '', , admin = ''] = stdout().match(/http:\/\/127\.0\.0\.1:\d+/g) ?? [];
      const restored = (): Promise<string> => ask(admin, '/metrics').then(({ text }) => text);
      await expect.poll(restored).toContain(`restored_records_total{source="snapshot"} ${count}`);
      expect((await ask(url, '/api/handles/21.T11998/demo')).status).toBe(200);
      child.kill('SIGINT');
      expect(await exited).toEqual({ code: 0, signal: null });
      expect(readdirSync(folder)).toEqual(['snapshot']);
    }
  });

  test('is disabled when its folder cannot be created, and the demo still starts', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'demo-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    cpSync('dist-demo', join(folder, 'dist-demo'), { recursive: true });
    cpSync('package.json', join(folder, 'package.json'));
    // node_modules is a file, so not even root can create a folder inside it.
    writeFileSync(join(folder, 'node_modules'), '');
    const { child, exited, stdout } = startProgram([join(folder, 'dist-demo/main.js')], {
      ...{ PORT: '0', ADMIN_PORT: '0', NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' },
      HANDLE_SERVER_PORT: String(await freePort()),
    });
    await expect.poll(stdout).toContain('for the next start: off');
    child.kill('SIGINT');
    expect(await exited).toEqual({ code: 0, signal: null });
  });
});
