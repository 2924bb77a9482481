// SIGHUP: the built program, with one worker and with two, reads its file again.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();
const PATH = '/21.T11998/page';
const READ = 'configuration reloaded';

/** The proxy with a file of its own; `rewrite` changes the file and sends SIGHUP. */
async function start(workers: number, yaml: string) {
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const CONFIG = join(folder, 'proxy.yaml');
  await writeFile(CONFIG, yaml);
  // A variable takes precedence over the file.
  const env = { UPSTREAM_URL: demo.url, SERVER_WORKERS: String(workers), CONFIG };
  const proxy = await startBuiltProxy(env);
  const rewrite = async (text: string): Promise<void> => {
    await writeFile(CONFIG, text);
    proxy.hangUp();
  };
  return { proxy, rewrite };
}

const linesOf = (proxy: BuiltProxy, msg: string): Record<string, unknown>[] =>
  proxy.logs().filter((line) => line['msg'] === msg);

/** The responses of all workers: new connections go to changing workers. */
async function answersOf(proxy: BuiltProxy, header: string): Promise<Set<unknown>> {
  const answers = await Promise.all(Array.from({ length: 30 }, () => ask(proxy.url, PATH)));
  return new Set(answers.map(({ status, headers }) => (status === 302 ? headers[header] : status)));
}

describe.each([1, 2])('with %d workers', (workers) => {
  test('reloadable keys change in all of them, and the log names them', async () => {
    const { proxy, rewrite } = await start(workers, 'http: { clientMaxAge: 7s }');
    expect(await answersOf(proxy, 'cache-control')).toEqual(new Set(['public, max-age=7']));
    await rewrite('http: { clientMaxAge: 5s }\ndeletion: { values: true }\nlog: { level: warn }');
    const fives = new Set(['public, max-age=5']);
    await expect.poll(() => answersOf(proxy, 'cache-control')).toEqual(fives);
    const stats = JSON.parse((await ask(proxy.adminUrl, '/stats')).text) as object;
    expect(stats).toMatchObject({ logLevel: 'warn' });
    await expect
      .poll(() => linesOf(proxy, READ))
      .toMatchObject([
        {
          level: 'info',
          changed: { 'http.clientMaxAge': '5s', 'deletion.values': 'true', 'log.level': 'warn' },
        },
      ]);
    expect(await answersOf(proxy, 'cache-control')).toEqual(fives);
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
  });

  test('what needs a restart is named without its value, and stays as it is', async () => {
    const { proxy, rewrite } = await start(workers, '{}');
    await rewrite('redis: { url: "redis://:not-to-be-seen@127.0.0.1:1" }\nserver: { idleTimeout: 5m }');
    await expect
      .poll(() => linesOf(proxy, 'changed keys need a restart'))
      .toMatchObject([{ level: 'warn', keys: ['server.idleTimeout', 'redis.url'] }]);
    expect(linesOf(proxy, READ)).toMatchObject([{ changed: {} }]);
    expect(await answersOf(proxy, 'cache-control')).toEqual(new Set(['public, max-age=60']));
    expect(JSON.parse((await ask(proxy.adminUrl, '/stats')).text)).toMatchObject({
      redis: { state: 'unused' },
    });
    expect(proxy.output()).not.toContain('not-to-be-seen');
  });

  test('an invalid file changes nothing, and its error is logged', async () => {
    const { proxy, rewrite } = await start(workers, 'http: { clientMaxAge: 7s }');
    await rewrite('http: { clientMaxAge: 5s }\ncache: { found: { maxTTL: 1h } }');
    const broken = 'reload failed, keeping the current configuration';
    await expect.poll(() => linesOf(proxy, broken)).toHaveLength(1);
    expect(String(linesOf(proxy, broken)[0]?.['reason'])).toContain('did you mean cache.found.maxTtl?');
    expect(await answersOf(proxy, 'cache-control')).toEqual(new Set(['public, max-age=7']));
    await rewrite('http: { clientMaxAge: 5s }');
    await expect.poll(() => answersOf(proxy, 'cache-control')).toEqual(new Set(['public, max-age=5']));
  });

  test('a request in flight is answered as if nothing had happened', async () => {
    const { proxy, rewrite } = await start(workers, 'http: { clientMaxAge: 7s }');
    demo.hold.begin('GET');
    onTestFinished(() => {
      demo.hold.end('GET');
    });
    const answer = ask(proxy.url, '/api/handles/21.T11998/alias');
    await expect.poll(() => demo.hold.size).toBe(1);
    await rewrite('http: { clientMaxAge: 5s }');
    await expect.poll(() => linesOf(proxy, READ)).toHaveLength(1);
    demo.hold.end('GET');
    expect((await answer).status).toBe(200);
  });
});

test('a worker that is replaced takes what is in effect, even when the file is broken by then', async () => {
  const { proxy, rewrite } = await start(2, 'http: { clientMaxAge: 7s }');
  await rewrite('http: { clientMaxAge: 5s }');
  await expect.poll(() => answersOf(proxy, 'cache-control')).toEqual(new Set(['public, max-age=5']));
  await rewrite('http: { clientMaxAge: broken }');
  const pids = async (): Promise<number[]> => {
    const { workers } = JSON.parse((await ask(proxy.adminUrl, '/stats')).text) as {
      workers: { pid: number }[];
    };
    return workers.map(({ pid }) => pid);
  };
  const [victim = 0, other = 0] = await pids();
  process.kill(victim, 'SIGKILL');
  await expect
    .poll(async () => (await pids()).filter((pid) => pid !== victim && pid !== other), { timeout: 60_000 })
    .toHaveLength(1);
  expect(await answersOf(proxy, 'cache-control')).toEqual(new Set(['public, max-age=5']));
});
