// The built program from the outside: how it refuses to start, logs and answers its operator.
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

describe('a configuration that cannot be used', () => {
  test('without UPSTREAM_URL the program names the key and exits with code 2', async () => {
    const { exited, stdout, stderr } = startMain({});
    expect(await exited).toEqual({ code: 2, signal: null });
    expect(stderr()).toMatch(/^Set UPSTREAM_URL to the address of your Handle server, such as https:\S+\n$/);
    expect(stdout()).toBe('');
  });

  test('an unknown key in the file is named, with the key that was meant', async () => {
    const CONFIG = await configFile('cache:\n  found:\n    maxTTL: 1h\n');
    const { exited, stdout, stderr } = startMain({ CONFIG, UPSTREAM_URL: demo.url });
    expect(await exited).toEqual({ code: 2, signal: null });
    expect(stderr()).toContain(
      `  cache.found.maxTTL (file ${CONFIG}): unknown key; did you mean cache.found.maxTtl?\n`,
    );
    expect(stdout(), 'nothing was said to listen').toBe('');
  });

  test('a value that is not allowed is named, with its key and what is allowed', async () => {
    const CONFIG = await configFile('cache:\n  notFound:\n    ttl: soon\n');
    const { exited, stdout, stderr } = startMain({ CONFIG, UPSTREAM_URL: demo.url });
    expect(await exited).toEqual({ code: 2, signal: null });
    const key = stderr()
      .split('\n')
      .find((line) => line.includes('cache.notFound.ttl'));
    expect(key).toContain(CONFIG);
    expect(key).toContain('soon');
    expect(key).toMatch(/duration with its unit .* from 0s to 30d/);
    expect(stdout(), 'nothing was said to listen').toBe('');
  });

  test.each([
    ['a file that is not there', '/nowhere/proxy.yaml'],
    ['a folder in place of a file', tmpdir()],
  ])('%s is named', async (_what, CONFIG) => {
    const { exited, stderr } = startMain({ CONFIG, UPSTREAM_URL: demo.url });
    expect(await exited).toEqual({ code: 2, signal: null });
    expect(stderr()).toContain(`file ${CONFIG}: cannot be read`);
    expect(stderr(), 'an operator needs no stack trace').not.toContain('    at ');
  });

  test('a port in use ends the program, with the port in the message', async () => {
    const first = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    const { port } = new URL(first.url);
    const { exited, stdout, stderr } = startMain({ UPSTREAM_URL: demo.url, PORT: port });
    expect((await exited).code).toBeGreaterThan(0);
    expect(stdout() + stderr()).toContain(port);
  });
});

describe('the log', () => {
  const requests = (proxy: BuiltProxy): Record<string, unknown>[] =>
    proxy.logs().filter(({ msg }) => msg === 'request');

  test('has one JSON line for each request, with its outcome', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    await ask(proxy.url, PATH);
    await ask(proxy.url, PATH);
    await ask(proxy.url, '/api/handles/21.T11998/nobody');
    await expect.poll(() => requests(proxy)).toHaveLength(3);
    const common = { level: 'info', method: 'GET', ms: expect.any(Number) as number };
    // Lines of hits are gathered, so they may come after those of later requests.
    expect(requests(proxy)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ ...common, handle: '21.T11998/page', status: 200, result: 'miss' }),
        expect.objectContaining({ ...common, handle: '21.T11998/page', status: 200, result: 'hit' }),
        expect.objectContaining({ ...common, handle: '21.T11998/nobody', status: 404, result: 'miss' }),
      ]),
    );
  });

  test('never has what was in a query or in an Authorization header', async () => {
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

test('the admin port answers /healthz, /readyz, /metrics and /stats, the public port none of them', async () => {
  const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
  await ask(proxy.url, PATH);
  expect(JSON.parse((await ask(proxy.adminUrl, '/healthz')).text)).toEqual({ status: 'ok' });
  expect(JSON.parse((await ask(proxy.adminUrl, '/readyz')).text)).toEqual({ status: 'ready', notReady: [] });
  await expect
    .poll(async () => (await ask(proxy.adminUrl, '/metrics')).text)
    .toContain('handle_proxy_requests_total{family="record",result="miss",status="200"} 1');
  expect(JSON.parse((await ask(proxy.adminUrl, '/stats')).text)).toMatchObject({
    memory: expect.arrayContaining([
      expect.objectContaining({ store: 'found', entries: 1 }) as unknown,
    ]) as unknown,
  });
  for (const path of ['/healthz', '/readyz', '/metrics', '/stats', '/purge']) {
    const answer = await ask(proxy.url, path);
    expect(answer.text, path).not.toMatch(/"status":"(ok|ready)"|handle_proxy_|"memory"/);
  }
});

test('the demo prints curl lines, and each of them gets an answer', async () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: { demo: string } };
  const [node, ...args] = scripts.demo.split('&&').at(-1)!.trim().split(' ');
  expect(node).toBe('node');
  const { stdout } = startProgram(args, { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' });
  await expect.poll(stdout, { timeout: START_TIMEOUT_MS }).toContain('Ctrl-C');
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
    expect(got, line).toMatch(/\nstatus 200$/);
  }
});
