// The exit codes and the output of commands, and the commands as a program.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startBuiltProxy, startListeningProxy, startProgram } from '../support/built-proxy.js';
import { builtCli, cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';

const demo = await startDemoServer();
const TOKEN = 'a-token-of-the-operator';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'proxy-cli-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true });
  });
  return path;
}

describe('CLI commands', () => {
  test('have one help text each', async () => {
    const { code, stdout } = await builtCli(['--help']);
    expect(code).toBe(0);
    const commands = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map(([, name = '']) => name);
    expect(commands).toEqual(
      expect.arrayContaining(['serve', 'check-config', 'resolve', 'purge', 'stats', 'warm']),
    );
    expect(stdout).toContain('Exit codes');
    const helps = await Promise.all(commands.map((name) => builtCli([name, '--help'])));
    for (const help of helps) expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const { stdout: text } of helps) expect(text).toMatch(/^Usage: [^]*Exit codes/);
  });

  test('print the package version', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await builtCli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('exit with 2 on invalid usage', async () => {
    expect((await cli(['purge'])).code).toBe(2);
    expect((await cli(['purge', '--prefix', '21.T1/a'])).code).toBe(2);
    const wrong = await cli(['purge', '21.T1/a', 'nonsense']);
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('nonsense is not a handle') as string,
    });
    for (const [option, value] of [
      ['--month', 'nomonth'],
      ['--month', '2026-13'],
      ['--prefix', '21.T1/a'],
    ] as const) {
      const report = await cli(['report', '--prefix', '21.T1', option, value]);
      expect(report).toMatchObject({ code: 2, stderr: expect.stringContaining(option) as string });
    }
    expect((await cli(['nonsense'])).code).toBe(2);
    expect((await cli(['warm', '/nowhere/list'])).code).toBe(2);
    expect((await cli(['resolve', 'a', '--json', '--plain'])).code).toBe(2);
    expect((await cli(['stats', '--admin', 'here'])).code).toBe(2);
    expect((await cli(['completion', 'powershell'])).code).toBe(2);
  });

  test('print the source of each effective value in check-config, with secrets masked', async () => {
    const file = join(folder(), 'proxy.yaml');
    writeFileSync(file, 'cache: { found: { maxTtl: 2h } }\n');
    const env = { UPSTREAM_URL: demo.url, ADMIN_TOKEN: TOKEN, REDIS_URL: 'redis://user:hush@redis:6379' };
    const { code, stdout } = await cli(['check-config', '--all', '--config', file], env);
    expect(code).toBe(0);
    expect((await cli(['check-config', '--all'], { ...env, CONFIG: file })).stdout).toBe(stdout);
    expect(stdout).toMatch(new RegExp(`cache.found.maxTtl +"2h" +file ${file}`));
    expect(stdout).toMatch(/redis.url +\S+ +variable REDIS_URL/);
    expect(stdout).toMatch(/log.level +"info" +default/);
    expect(stdout).not.toMatch(/hush|operator/);
    const set = (await cli(['check-config', '--config', file], env)).stdout.split('\n');
    expect(set.slice(0, 4).map((line) => line.split(' ', 1)[0])).toEqual([
      'upstream.url',
      'redis.url',
      'cache.found.maxTtl',
      'admin.token',
    ]);
    expect(set.slice(4)).toEqual([
      '',
      expect.stringMatching(
        /^The configuration is valid; \d+ keys with the default \(--all prints them\)\.$/,
      ),
      '',
    ]);
    const bad = await cli(['check-config'], { PORT: 'x' });
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining('server.port')]);
  });

  test('reject a misspelled variable in check-config, while serve only warns', async () => {
    const { code, stdout, stderr } = await cli(['check-config'], {
      UPSTREAM_URL: demo.url,
      REDIS_URI: 'redis://a',
    });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toBe(
      'Invalid configuration:\n  variable REDIS_URI: unknown variable; did you mean REDIS_URL?\n',
    );
    const unclear = await cli(['check-config'], { UPSTREAM_URL: demo.url, CACHE_FOUND_TTL: '5m' });
    const meant = 'CACHE_FOUND_MIN_TTL or CACHE_FOUND_MAX_TTL or CACHE_FOUND_MAX_ENTRIES';
    expect(unclear.stderr).toContain(`CACHE_FOUND_TTL: unknown variable; did you mean ${meant}?`);
    const service = { REDIS_PORT: 'tcp://10.0.0.11:6379', REDIS_SERVICE_HOST: '10.0.0.11' };
    expect((await cli(['check-config'], { UPSTREAM_URL: demo.url, ...service })).code).toBe(0);
    const proxy = await startListeningProxy({ UPSTREAM_URL: demo.url, REDIS_URI: 'redis://a' });
    expect(proxy.logs().filter(({ level }) => level === 'warn')).toMatchObject([
      { msg: 'unknown variables are ignored' },
    ]);
  });

  test('open the seed and the snapshot folder in check-config --probe, as serve does', async () => {
    const env = {
      UPSTREAM_URL: demo.url,
      SEED_FILE: '/nowhere/seed',
      CACHE_SNAPSHOT_FILE: '/nowhere/snapshot',
    };
    const checked = await cli(['check-config', '--probe'], env);
    expect(checked).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/seed\.file .*ENOENT.*\n.*cache\.snapshot\.file .*ENOENT/) as string,
    });
    const served = await builtCli(['serve'], env);
    expect([served.code, served.stderr]).toEqual([2, checked.stderr]);
  });

  test('include resolve, purge, stats and warm, which work with a running proxy', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, ADMIN_TOKEN: TOKEN });
    const env = { PROXY_URL: proxy.url, ADMIN_URL: proxy.adminUrl, ADMIN_TOKEN: TOKEN };
    const resolved = await builtCli(['resolve', '21.T11998/page'], env);
    expect(resolved).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"responseCode":1') as string,
    });
    expect(resolved.stderr).toContain('found, fresh');
    expect((await builtCli(['resolve', '21.T11998/nobody'], env)).code).toBe(1);
    const purged = await builtCli(['purge', '--prefix', '21.T11998', '--soft'], env);
    expect(purged.stdout).toBe('Marked as stale in every instance: all handles of the prefix 21.T11998\n');
    const stats = (await builtCli(['stats'], env)).stdout;
    expect(stats).toMatch(
      /Top handles \(requests in the last 5 to 10 minutes\)\n(?: .*\n)* +21\.T11998\/page +1 request\n/,
    );
    expect(stats).toMatch(/Hit ratio +\d+ % \(\d+ of \d+\)/);
    expect(stats).toContain(`working (${demo.url})`);
    const list = join(folder(), 'handles');
    const state = `${list}.done`;
    writeFileSync(list, '21.T11998/page\n21.T11998/empty\n21.T11998/nobody\n');
    const warmed = await builtCli(['warm', list, '--state', state], env);
    expect(warmed).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('2 warmed, 1 not found') as string,
    });
    expect(readFileSync(state, 'utf8').trim().split('\n')).toHaveLength(3);
    demo.reset();
    expect((await builtCli(['warm', list, '--state', state], env)).stdout).toContain('3 not due; 0 left');
    expect(demo.asked).toBe(0);
  });

  test('print a summary of a purge, and JSON with --json', async () => {
    const { place } = await startOperated(demo.url);
    const one = await cli(['purge', 'hdl:21.T11998/page'], place);
    expect(one).toEqual({
      code: 0,
      stdout: 'Purged in every instance: 21.T11998/page\n',
      stderr: '',
    });
    const two = await cli(['purge', '21.T11998/page', '21.T11998/demo'], place);
    expect(two.stdout).toBe('Purged in every instance: 2 handles\n');
    const json = await cli(['purge', '--all', '--json'], place);
    expect(JSON.parse(json.stdout)).toEqual({ purged: { all: true }, soft: false, shared: true });
    const prefix = await cli(['purge', '--prefix', '21.T1', '--json'], place);
    expect(JSON.parse(prefix.stdout)).toMatchObject({ purged: { prefix: '21.T1/' } });
  });

  test('exit with 2 when the token is missing, and with 1 when it is wrong', async () => {
    const { place } = await startOperated(demo.url, { ADMIN_TOKEN: TOKEN });
    const missing = await cli(['stats'], place);
    expect(missing).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('set ADMIN_TOKEN') as string,
    });
    const wrong = await cli(['purge', '--all'], { ...place, ADMIN_TOKEN: 'another-token-than-that' });
    expect(wrong).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('does not accept') as string,
    });
    expect((await cli(['stats'], { ...place, ADMIN_TOKEN: TOKEN })).code).toBe(0);
  });

  test('print each figure of stats with its unit, under a heading', async () => {
    const { place } = await startOperated(demo.url);
    for (let asked = 0; asked < 3; asked++) await cli(['resolve', '21.T11998/page'], place);
    await cli(['resolve', '21.T11998/demo'], place);
    const { stdout } = await cli(['stats'], place);
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(stdout.match(/^\S.*$/gm)).toEqual([
      'Proxy',
      'Requests (since the start)',
      'Handle server (since the start)',
      'Latency (since the start)',
      'Memory',
      'Top handles (requests in the last 5 to 10 minutes)',
    ]);
    expect(stdout).toMatch(new RegExp(`^ {2}Version +${version}$`, 'm'));
    expect(stdout).toMatch(/^ {2}Total +4 requests$/m);
    expect(stdout).toMatch(/^ {2}Hit ratio +50 % \(2 of 4\)$/m);
    expect(stdout).toMatch(/^ {2}Handle server +median [\d.]+ ms, 99th percentile [\d.]+ ms$/m);
    expect(stdout).toMatch(/^ {2}21\.T11998\/page +3 requests$/m);
    expect(stdout).toMatch(/^ {2}found +1 entry, 0\.\d MiB, 0 evictions$/m);
    expect(stdout).toMatch(/^ {2}newcomers +1 entry, 0\.\d MiB, 0 evictions$/m);
  });

  test('start the proxy with serve, which exits with 2 when configuration is missing', async () => {
    expect((await builtCli(['serve'])).code).toBe(2);
    const env = { UPSTREAM_URL: demo.url, PORT: '0', ADMIN_PORT: '0', HOST: '127.0.0.1' };
    const { child, exited, stdout } = startProgram(['dist/main.js', 'serve'], env);
    await expect.poll(stdout).toContain('listening');
    child.kill('SIGTERM');
    expect((await exited).code).toBe(0);
  });
});
