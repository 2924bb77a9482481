// Snapshots of the built program: graceful shutdown, kill -9, full disk.
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, ROOT, follow, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { freePort } from '../support/free-port.js';

const demo = await startDemoServer();
const PATHS = ['demo', 'page', 'alias'].map((name) => `/api/handles/21.T11998/${name}`);

afterEach(() => {
  demo.heal();
  demo.reset();
});

function newFile(): { folder: string; file: string } {
  const folder = mkdtempSync(join(tmpdir(), 'snapshot-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return { folder, file: join(folder, 'snapshot') };
}

const linesOf = (proxy: BuiltProxy, msg: string) => proxy.logs().filter((line) => line['msg'] === msg);

const read = async (proxy: BuiltProxy) =>
  Promise.all(
    PATHS.map(async (path) => {
      const { status, headers } = await ask(proxy.url, path);
      return [status, /hit|detail=\w+/g.exec(String(headers['cache-status']))?.[0]];
    }),
  );

describe('snapshot of the built program', () => {
  test('is written on shutdown, leaves no temporary file, and is restored at the next start', async () => {
    const { folder, file } = newFile();
    const env = { UPSTREAM_URL: demo.url, CACHE_SNAPSHOT_FILE: file };
    const first = await startBuiltProxy(env);
    await read(first);
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect(linesOf(first, 'snapshot written').at(-1)).toMatchObject({ records: 3 });
    expect(readdirSync(folder)).toEqual(['snapshot']);
    demo.fail('error');
    const second = await startBuiltProxy(env);
    await expect.poll(() => linesOf(second, 'snapshot loaded')).toHaveLength(1);
    expect(await read(second)).toEqual(PATHS.map(() => [200, 'hit']));
    await second.stop();
  });

  /** Suspends the process (SIGSTOP) while it writes the next snapshot. */
  async function stopWhileWriting({ pid }: BuiltProxy, folder: string): Promise<void> {
    const isWriting = (): boolean => readdirSync(folder).includes('snapshot.tmp');
    for (;;) {
      await expect.poll(isWriting, { interval: 2 }).toBe(true);
      process.kill(pid, 'SIGSTOP');
      if (isWriting()) return;
      process.kill(pid, 'SIGCONT');
    }
  }

  /** Returns enough records to make a snapshot take about 100 ms to write. */
  const manyRecords = (): string => {
    const times = { requestedAt: '2026-11-21', staleAt: '2026-11-22', deleteAt: '2126-11-22' };
    const values = [{ index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org/' } }];
    const line = (at: number) => JSON.stringify({ handle: `21.T1/${at}`, ...times, values });
    return Array.from({ length: 20_000 }, (_, at) => line(at)).join('\n');
  };

  test('survives kill -9 during a write, and the next shutdown removes the incomplete file', async () => {
    const { folder, file } = newFile();
    const env = {
      UPSTREAM_URL: demo.url,
      CACHE_SNAPSHOT_FILE: file,
      ...fixed({ cache: { snapshot: { everyMs: 1000 } } }),
    };
    const first = await startBuiltProxy(env);
    await read(first);
    await expect.poll(() => linesOf(first, 'snapshot written').at(-1)).toMatchObject({ records: 3 });
    const body = manyRecords();
    expect((await ask(first.adminUrl, '/import', { method: 'POST', body })).status).toBe(200);
    await stopWhileWriting(first, folder);
    await first.stop('SIGKILL');
    expect(readdirSync(folder)).toContain('snapshot.tmp');
    demo.fail('error');
    const second = await startBuiltProxy(env);
    await expect.poll(() => linesOf(second, 'snapshot loaded')).toHaveLength(1);
    expect(await read(second)).toEqual(PATHS.map(() => [200, 'hit']));
    await second.stop();
    expect(readdirSync(folder)).toEqual(['snapshot']);
  });

  test('survives a full disk while the service continues', async () => {
    const { folder, file } = newFile();
    const first = await startBuiltProxy({ UPSTREAM_URL: demo.url, CACHE_SNAPSHOT_FILE: file });
    await read(first);
    await first.stop();
    const { size } = statSync(file);
    const [port, adminPort] = [await freePort(), await freePort()];
    // A file size limit of 0 makes every write fail, as on a full disk.
    const child = spawn(
      '/bin/sh',
      ['-c', 'ulimit -f 0; exec node --import ./test/support/preload-fixed.js dist/main.js'],
      {
        cwd: ROOT,
        env: {
          PATH: process.env['PATH'],
          ...{ HOST: '127.0.0.1', PORT: String(port), ADMIN_PORT: String(adminPort) },
          ...{
            UPSTREAM_URL: demo.url,
            CACHE_SNAPSHOT_FILE: file,
            ...fixed({ cache: { snapshot: { everyMs: 1000 } } }),
          },
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    const { stdout, exited } = follow(child);
    await expect.poll(() => stdout()).toContain('"snapshot not written"');
    expect((await ask(`http://127.0.0.1:${port}`, PATHS[0] ?? '')).status).toBe(200);
    child.kill('SIGTERM');
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(readdirSync(folder)).toEqual(['snapshot']);
    expect(statSync(file).size).toBe(size);
  });
});
