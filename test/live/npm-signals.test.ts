// SIGTERM to npm and npx: the program shuts down gracefully.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Exit, ROOT, START_TIMEOUT_MS, follow } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();

/**
 * Creates a package folder with the project's scripts but no build step, because other tests use the build.
 */
function installedPackage(): string {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-npm-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  const start = scripts['start']?.replace('npm run --silent build', 'true');
  expect(start).toMatch(/^true && /);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', scripts: { start } }));
  symlinkSync(join(ROOT, 'dist'), join(folder, 'dist'));
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  const bin = join(folder, 'node_modules/.bin/handle-resolver-proxy');
  writeFileSync(bin, `#!/usr/bin/env node\nawait import('${join(ROOT, 'dist/main.js')}');\n`, {
    mode: 0o755,
  });
  return folder;
}

async function stopStarted(program: string, args: string[]): Promise<Exit> {
  const { child, exited, stdout } = follow(
    spawn(program, args, {
      cwd: installedPackage(),
      env: {
        PATH: process.env['PATH'],
        HOME: tmpdir(),
        UPSTREAM_URL: demo.url,
        HOST: '127.0.0.1',
        PORT: '0',
        ADMIN_PORT: '0',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  );
  await expect.poll(stdout, { timeout: START_TIMEOUT_MS }).toContain('"listening"');
  child.kill('SIGTERM');
  // stdout stays open until the last process has ended.
  const exit = await exited;
  expect(stdout()).toContain('"stopped"');
  return exit;
}

describe('signals through npm', () => {
  test('make npm start wait for a graceful shutdown of the proxy', async () => {
    expect(await stopStarted('npm', ['start'])).toEqual({ code: 0, signal: null });
  });

  test('shut down npx … serve gracefully, though its shell forwards no signal', async () => {
    await stopStarted('npx', ['--offline', 'handle-resolver-proxy', 'serve']);
  });
});
