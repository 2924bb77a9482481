// A low file descriptor limit: fewer clients, a warning in the log, and a working admin listener.
import { spawn } from 'node:child_process';
import { type Socket, connect } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { ROOT, START_TIMEOUT_MS, follow } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';

const demo = await startDemoServer();

describe('file descriptor limit of the built program', () => {
  test('leaves descriptors for files and the admin listener under hundreds of idle clients', async () => {
    const [port, adminPort] = [await freePort(), await freePort()];
    const child = spawn('/bin/sh', ['-c', 'ulimit -n 64; exec node dist/main.js'], {
      cwd: ROOT,
      env: {
        PATH: process.env['PATH'],
        ...{ HOST: '127.0.0.1', PORT: String(port), ADMIN_PORT: String(adminPort), UPSTREAM_URL: demo.url },
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const { stdout } = follow(child);
    const lines = (msg: string): Record<string, unknown>[] =>
      stdout()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((line) => line['msg'] === msg);
    await expect.poll(() => lines('listening'), { timeout: START_TIMEOUT_MS }).toHaveLength(1);
    expect(lines('file limit too low, accepting fewer connections')).toMatchObject([
      { level: 'warn', fileLimit: 64, remedy: expect.stringContaining('ulimit -n') as string },
    ]);
    const openIdle = (to: number, length: number): Socket[] => {
      const clients = Array.from({ length }, () => connect(to, '127.0.0.1').on('error', () => undefined));
      onTestFinished(() => {
        for (const client of clients) client.destroy();
      });
      return clients;
    };
    openIdle(port, 200);
    const drops = () => lines('too many connections, closing new ones');
    await expect
      .poll(drops)
      .toMatchObject([
        { reason: 'total', remedy: expect.stringContaining('file limit (ulimit -n') as string },
      ]);
    const callers = openIdle(adminPort, 100);
    // Those that wait for an accept count as open.
    await expect.poll(() => callers.filter(({ destroyed }) => !destroyed).length).toBeLessThan(10);
    for (const path of ['/healthz', '/metrics'])
      expect((await ask(`http://127.0.0.1:${adminPort}`, path)).status).toBe(200);
    // Connections idle for a second are closed to accept new clients.
    const read = () =>
      ask(`http://127.0.0.1:${port}`, '/api/handles/21.T11998/page').then(
        ({ status }) => status,
        () => 0,
      );
    await expect.poll(read).toBe(200);
    expect(drops()).toHaveLength(1);
  });
});
