// Commands on a terminal, except `resolve`, `warm` and `bench`, which have separate files.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';
import { itWithProgram } from '../support/programs.js';
import { CTRL_C, startOnTerminal } from '../support/terminal.js';

const demo = await startDemoServer();
const START = { timeout: 60_000 };
const onTerminal = async (args: string[], env: Record<string, string> = {}) => {
  const { exited, screen } = startOnTerminal(args, env);
  const { code } = await exited;
  return { code, screen: screen() };
};

describe('CLI on a terminal', () => {
  itWithProgram('script', 'runs serve until Ctrl-C', async () => {
    const ports = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' };
    const env = { ...ports, UPSTREAM_URL: demo.url, LOG_LEVEL: 'info' };
    const { screen, exited, press } = startOnTerminal(['serve'], env);
    await expect.poll(screen, START).toMatch(/^\d\d:\d\d:\d\dZ INFO  listening {2}url=http:\S+ {2}/m);
    press(CTRL_C);
    expect(await exited).toMatchObject({ code: 0 });
  });

  itWithProgram('script', 'refreshes the table of stats --watch until Ctrl-C', async () => {
    const { url, place } = await startOperated(demo.url);
    await fetch(`${url}/api/handles/21.T11998/demo`);
    const { screen, exited, press } = startOnTerminal(['stats', '--watch'], place);
    const table =
      /\u001b\[2J\u001b\[HProxy\r\n[^]*?Uptime +\d+ s\r\n[^]*?Total +1 request\r\n[^]*?21\.T11998\/demo +1 request\r\n/g;
    await expect.poll(() => screen().match(table)?.length, START).toBeGreaterThanOrEqual(2);
    press(CTRL_C);
    expect(await exited).toMatchObject({ code: 0 });
  });

  itWithProgram('script', 'escapes control characters in the handles of stats', async () => {
    const { url, place } = await startOperated(demo.url);
    await fetch(`${url}/api/handles/21.T11998/%1B%5D0;evil%07`);
    const { screen } = await onTerminal(['stats'], place);
    expect(screen).toContain(String.raw`21.T11998/\u001b]0;evil\u0007`);
    expect(screen).not.toMatch(/[\u0007\u001b]/);
  });

  itWithProgram('script', 'escapes control characters wherever a server writes them', async () => {
    const evil = '\u001b]0;evil\u0007\u009b31m';
    const report = { prefix: evil, month: evil, byInterface: { [evil]: 1 } };
    const none = { exact: true, maxError: 0, handles: [] };
    const bodies: Record<string, string> = {
      '/traffic': JSON.stringify({ blocked: [{ network: evil, until: evil, reason: evil }], rules: [] }),
      '/reports': JSON.stringify({ ...report, topHandles: none, topUnknown: none }),
      '/purge': JSON.stringify({ title: evil, code: evil }),
      '/export': `{"handle":"21.T1/A","values":["${evil}"]}\n`,
    };
    const admin = createServer(({ url = '' }, res) => {
      res.setHeader('Content-Type', 'application/x-ndjson');
      res.writeHead(url === '/purge' ? 500 : 200).end(bodies[url.split('?')[0] ?? '']);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void admin.close());
    await once(admin, 'listening');
    const place = { ADMIN_URL: `http://127.0.0.1:${(admin.address() as AddressInfo).port}` };
    const commands = [
      ['traffic'],
      ['report', '--prefix', '21.T1'],
      ['purge', '21.T1/A'],
      ['export', '--prefix', '21.T1'],
    ];
    for (const args of commands) {
      const { screen } = await onTerminal(args, place);
      expect(screen).toContain(String.raw`\u001b]0;evil\u0007\u009b`);
      expect(screen).not.toMatch(/[\u0007\u001b\u009b]/);
    }
  });

  itWithProgram('script', 'prints a purge report, or the remedy for a missing token', async () => {
    const token = 'a-token-of-the-operator';
    const { place } = await startOperated(demo.url, { ADMIN_TOKEN: token });
    const purged = await onTerminal(['purge', '--prefix', '21.T1'], { ...place, ADMIN_TOKEN: token });
    expect(purged.code).toBe(0);
    expect(purged.screen).toContain('Purged in every instance: all handles of the prefix 21.T1');
    const refused = await onTerminal(['purge', '--all'], place);
    expect(refused.code).toBe(2);
    expect(refused.screen).toContain('set ADMIN_TOKEN');
  });

  itWithProgram('script', 'prints the output of check-config, completion, help and --version', async () => {
    const config = await onTerminal(['check-config'], { UPSTREAM_URL: demo.url });
    expect(config).toMatchObject({
      code: 0,
      screen: expect.stringMatching(/upstream\.url .* variable UPSTREAM_URL\r\n/) as string,
    });
    const script = await onTerminal(['completion', 'bash']);
    expect(script).toMatchObject({ code: 0, screen: expect.stringContaining('complete -F') as string });
    const help = await onTerminal(['help']);
    expect(help).toMatchObject({ code: 0, screen: expect.stringContaining('Usage:') as string });
    const version = await onTerminal(['--version']);
    expect(version).toMatchObject({
      code: 0,
      screen: expect.stringMatching(/^\d+\.\d+\.\d+\r\n$/) as string,
    });
  });
});
