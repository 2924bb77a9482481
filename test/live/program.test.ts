// The built program from the outside: rejected configurations, logs, and operator endpoints.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import {
  type BuiltProxy,
  START_TIMEOUT_MS,
  startBuiltProxy,
  startMain,
  startProgram,
} from '../support/built-proxy.js';
import { basic, startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';

async function configFile(yaml: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'proxy.yaml');
  await writeFile(path, yaml);
  return path;
}

describe('built program', () => {
  describe('with an unusable configuration', () => {
    test('exits with code 2 and names the key when UPSTREAM_URL is missing', async () => {
      const { exited, stdout, stderr } = startMain({});
      expect(await exited).toEqual({ code: 2, signal: null });
      expect(stderr()).toMatch(
        /^Invalid configuration:\n {2}upstream\.url \(default\): set UPSTREAM_URL to the address of your Handle server, such as https:\S+\n$/,
      );
      expect(stdout()).toBe('');
    });

    test('prints the same message in check-config', async () => {
      const CONFIG = await configFile('cache:\n  notFound:\n    ttl: soon\n');
      const CA = await configFile('not a certificate');
      for (const env of [{}, { CONFIG }, { UPSTREAM_URL: demo.url, UPSTREAM_CA_FILE: CA }]) {
        const started = startMain(env);
        const checked = startProgram(['dist/main.js', 'check-config'], env);
        expect(await started.exited).toEqual({ code: 2, signal: null });
        expect(await checked.exited).toEqual({ code: 2, signal: null });
        expect(checked.stderr()).toBe(started.stderr());
        expect(checked.stdout()).toBe('');
      }
    });
  });

  describe('unusable listen address, reported with exit code 2, key and remedy', () => {
    const cases: [what: string, env: Record<string, string>, text: RegExp][] = [
      ['an admin port in use', { ADMIN_PORT: 'taken' }, /EADDRINUSE.* set admin\.port \(ADMIN_PORT\)/],
      [
        'an unknown host name',
        { HOST: 'nowhere.invalid' },
        /(ENOTFOUND|EAI_AGAIN).* Set server\.host \(HOST\)/,
      ],
    ];

    test.each(cases)('%s', async (_what, env, text) => {
      const { port } = new URL(demo.url);
      const given = Object.entries(env).map(([name, value]) => [name, value.replace('taken', port)] as const);
      const variables = Object.fromEntries<string>(given);
      const { exited, stderr } = startMain({ UPSTREAM_URL: demo.url, ...variables });
      expect(await exited).toEqual({ code: 2, signal: null });
      expect(stderr()).toMatch(text);
      expect(stderr().trimEnd().split('\n')).toHaveLength(1);
    });

    test('in the demo', async () => {
      const { port } = new URL(demo.url);
      const { exited, stderr } = startProgram(demoArguments(), { PORT: port, ADMIN_PORT: '0' });
      expect(await exited).toEqual({ code: 2, signal: null });
      expect(stderr()).toMatch(
        /^Cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\).* set server\.port \(PORT\)/,
      );
    });
  });

  describe('process', () => {
    const version = (JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version;

    test('reads the file given with --config, and prints the program version for --version', async () => {
      const file = await configFile('cache: { found: { maxTtl: 1 } }');
      const { exited, stderr } = startProgram(['dist/main.js', '--config', file], { UPSTREAM_URL: demo.url });
      expect(await exited).toEqual({ code: 2, signal: null });
      expect(stderr()).toContain(`cache.found.maxTtl (file ${file})`);
      const asked = startProgram(['dist/main.js', '--version'], {});
      expect(await asked.exited).toEqual({ code: 0, signal: null });
      expect(asked.stdout()).toBe(`${version}\n`);
    });

    test('logs its version at start, and reports it in /stats', async () => {
      const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
      expect(proxy.logs().find(({ msg }) => msg === 'listening')).toMatchObject({ version });
      expect(JSON.parse((await ask(proxy.adminUrl, '/stats')).text)).toMatchObject({ version });
    });
  });

  describe('log', () => {
    const requests = (proxy: BuiltProxy): Record<string, unknown>[] =>
      proxy.logs().filter(({ msg }) => msg === 'request');

    test('has one JSON line per request, with its result', async () => {
      const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, LOG_REQUESTS: 'all' });
      await ask(proxy.url, PATH);
      await ask(proxy.url, PATH);
      await ask(proxy.url, '/api/handles/21.T11998/nobody');
      await expect.poll(() => requests(proxy)).toHaveLength(3);
      const common = { level: 'info', method: 'GET', ms: expect.any(Number) as number };
      // Log lines of hits are buffered and may follow those of later requests.
      expect(requests(proxy)).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ ...common, handle: '21.T11998/page', status: 200, result: 'miss' }),
          expect.objectContaining({ ...common, handle: '21.T11998/page', status: 200, result: 'hit' }),
          expect.objectContaining({ ...common, handle: '21.T11998/nobody', status: 404, result: 'miss' }),
        ]),
      );
    });

    test('never contains query strings or Authorization headers', async () => {
      const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, LOG_LEVEL: 'trace' });
      const authorization = basic('300:21.T11998/USER01', 'not the pässword');
      await ask(proxy.url, `${PATH}?type=SECRETQUERY`, { headers: { authorization } });
      await ask(proxy.url, `${PATH}?index=SECRETQUERY`);
      await ask(proxy.url, `/api/nothing?SECRETQUERY`, { headers: { authorization } });
      await ask(proxy.url, `/api/handles/%zz?SECRETQUERY`, { headers: { authorization } });
      demo.fail('reset', { times: 4 });
      await ask(proxy.url, `${PATH}?type=SECRETQUERY`, { headers: { authorization } });
      demo.heal();
      await expect.poll(() => requests(proxy)).toHaveLength(5);
      await proxy.stop();
      expect(proxy.output()).not.toContain('SECRETQUERY');
      expect(proxy.output()).not.toContain(authorization.split(' ')[1]);
    });
  });

  test('serves /healthz, /readyz, /metrics and /stats only on the admin port', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    await ask(proxy.url, PATH);
    // The event loop may have stalled on a busy machine.
    const stateAt = async (path: string): Promise<unknown> =>
      JSON.parse((await ask(proxy.adminUrl, path)).text);
    await expect.poll(() => stateAt('/healthz')).toEqual({ status: 'ok' });
    await expect.poll(() => stateAt('/readyz')).toEqual({ status: 'ready', notReady: [] });
    await expect
      .poll(async () => (await ask(proxy.adminUrl, '/metrics')).text)
      .toContain('handle_proxy_requests_total{interface="record",result="miss",status="200"} 1');
    expect(JSON.parse((await ask(proxy.adminUrl, '/stats')).text)).toMatchObject({
      memory: expect.arrayContaining([
        expect.objectContaining({ store: 'newcomers', entries: 1 }) as unknown,
      ]) as unknown,
    });
    for (const path of ['/healthz', '/readyz', '/metrics', '/stats', '/purge']) {
      const answer = await ask(proxy.url, path);
      expect(answer.text, path).not.toMatch(/"status":"(ok|ready)"|handle_proxy_|"memory"/);
    }
  });

  /** test/live/demo-native.test.ts covers the native ports. */
  const NATIVE_PORTS = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' };

  /** Returns the Node arguments of `npm run demo`. */
  function demoArguments(): string[] {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: { demo: string } };
    const [exec, node, ...args] = scripts.demo.split('&&').at(-1)!.trim().split(' ');
    expect([exec, node]).toEqual(['exec', 'node']);
    return args;
  }

  test('starts the demo on loopback, which prints curl commands that succeed', async () => {
    const { stdout } = startProgram(demoArguments(), {
      HOST: '',
      PORT: '0',
      ADMIN_PORT: '0',
      ...NATIVE_PORTS,
    });
    await expect.poll(stdout, { timeout: START_TIMEOUT_MS }).toContain('Ctrl-C');
    const urls = stdout().match(/http:\/\/[^/]+(?=:\d+\/)/g);
    expect(new Set(urls)).toEqual(new Set(['http://127.0.0.1']));
    const lines = stdout()
      .split('\n')
      .filter((line) => line.startsWith('  curl '));
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines) {
      const [command] = line.trim().split(' | ');
      const { stdout: got } = await promisify(execFile)('sh', [
        '-c',
        `${command!} -w '\\nstatus %{http_code}'`,
      ]);
      expect(got, line).toMatch(/\nstatus 20[01]$/);
    }
  });
});
