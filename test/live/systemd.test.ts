// Notifications from the built program to systemd, through a fake `systemd-notify`.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();

describe('systemd notification', () => {
  test('reports the start, a running event loop and the shutdown to a Type=notify unit with WatchdogSec', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'systemd-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const heard = join(folder, 'heard');
    writeFileSync(heard, '');
    writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$1 $NOTIFY_SOCKET" >> ${heard}\n`);
    chmodSync(join(folder, 'systemd-notify'), 0o755);
    const messages = (): string[] => readFileSync(heard, 'utf8').split('\n').slice(0, -1);
    const env = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '400000', PATH: `${folder}:/usr/bin:/bin` };
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, ...env });
    const watchdog = () => messages().filter((message) => message === 'WATCHDOG=1 /run/notify').length;
    // Each message is written by a separate process, so on a busy machine a later message may come first.
    await expect.poll(messages).toContain('READY=1 /run/notify');
    await expect.poll(watchdog).toBeGreaterThan(1);
    expect(messages()).not.toContain('STOPPING=1 /run/notify');
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
    await expect.poll(messages).toContain('STOPPING=1 /run/notify');
  });
});
