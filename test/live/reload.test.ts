// Configuration reload of the built program on SIGHUP.
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { writeCountryDatabase } from '../support/country-database.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();
const PATH = '/21.T11998/page';
const READ = 'configuration reloaded';

/** Starts the proxy with a configuration file. `rewrite` changes the file and sends SIGHUP. */
async function start(yaml: string) {
  const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const CONFIG = join(folder, 'proxy.yaml');
  await writeFile(CONFIG, yaml);
  // The UPSTREAM_URL variable takes precedence over the file.
  const env = { UPSTREAM_URL: demo.url, CONFIG };
  const proxy = await startBuiltProxy(env);
  const rewrite = async (text: string): Promise<void> => {
    await writeFile(CONFIG, text);
    proxy.hangUp();
  };
  return { proxy, rewrite };
}

const linesOf = (proxy: BuiltProxy, msg: string): Record<string, unknown>[] =>
  proxy.logs().filter((line) => line['msg'] === msg);

async function answerOf(proxy: BuiltProxy, header: string): Promise<unknown> {
  const { status, headers } = await ask(proxy.url, PATH);
  return status === 302 ? headers[header] : status;
}

describe('reload of the built program (SIGHUP)', () => {
  test('applies reloadable keys, and logs their names and values', async () => {
    const { proxy, rewrite } = await start('http: { clientMaxAge: 7s }');
    expect(await answerOf(proxy, 'cache-control')).toBe('public, max-age=7');
    await rewrite('http: { clientMaxAge: 5s }\ndeletion: { values: true }\nlog: { level: warn }');
    await expect.poll(() => answerOf(proxy, 'cache-control')).toBe('public, max-age=5');
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
    expect(await answerOf(proxy, 'cache-control')).toBe('public, max-age=5');
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
  });

  test('logs the names of changed keys that need a restart, and does not apply them', async () => {
    const { proxy, rewrite } = await start('{}');
    await rewrite('redis: { url: "redis://:not-to-be-seen@127.0.0.1:1" }\nserver: { shutdownTimeout: 5m }');
    await expect
      .poll(() => linesOf(proxy, 'changed keys need a restart'))
      .toMatchObject([{ level: 'warn', keys: ['server.shutdownTimeout', 'redis.url'] }]);
    expect(linesOf(proxy, READ).map(({ changed }) => changed)).toEqual([{}]);
    expect(await answerOf(proxy, 'cache-control')).toBe('public, max-age=60');
    expect(JSON.parse((await ask(proxy.adminUrl, '/stats')).text)).toMatchObject({
      redis: { state: 'disabled' },
    });
    expect(proxy.output()).not.toContain('not-to-be-seen');
  });

  test('changes nothing when the file is invalid, and logs the error', async () => {
    const { proxy, rewrite } = await start('http: { clientMaxAge: 7s }');
    await rewrite('http: { clientMaxAge: 5s }\ncache: { found: { maxTTL: 1h } }');
    const broken = 'reload failed, keeping the current configuration';
    await expect.poll(() => linesOf(proxy, broken)).toHaveLength(1);
    expect(String(linesOf(proxy, broken)[0]?.['reason'])).toContain('did you mean cache.found.maxTtl?');
    expect(await answerOf(proxy, 'cache-control')).toBe('public, max-age=7');
    await rewrite('http: { clientMaxAge: 5s }');
    await expect.poll(() => answerOf(proxy, 'cache-control')).toBe('public, max-age=5');
  });

  describe('leaves a running proxy as it is, and answering,', () => {
    const broken = 'reload failed, keeping the current configuration';
    const replaceByPipe = async (path: string): Promise<void> => {
      await rm(path);
      expect(spawnSync('mkfifo', [path]).status).toBe(0);
    };

    test.each<[name: string, reason: string, replace: (file: string, config: string) => Promise<void>]>([
      [
        'the configuration is a named pipe that nobody writes to',
        'proxy.yaml: cannot be read: it is not a regular file',
        (_file, config) => replaceByPipe(config),
      ],
      [
        'a file that it names is such a pipe',
        'countries.mmdb cannot be read: it is not a regular file',
        replaceByPipe,
      ],
      [
        'a country database has only the mark of one',
        'countries.mmdb is not a database in the MaxMind format',
        (file) => writeFile(file, `${'x'.repeat(1000)}\xab\xcd\xefMaxMind.com${'x'.repeat(100)}`),
      ],
    ])('if %s', async (_name, reason, replace) => {
      const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
      onTestFinished(() => rm(folder, { recursive: true }));
      const CONFIG = join(folder, 'proxy.yaml');
      const file = writeCountryDatabase({ '127.0.0.0/8': 'DE' }, join(folder, 'countries.mmdb'));
      await writeFile(CONFIG, `http: { clientMaxAge: 7s }\nredirect: { countryDatabase: ${file} }`);
      const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, CONFIG });
      await replace(file, CONFIG);
      proxy.hangUp();
      await expect.poll(() => linesOf(proxy, broken)).toHaveLength(1);
      expect(linesOf(proxy, broken)[0]?.['reason']).toContain(reason);
      expect(linesOf(proxy, READ)).toEqual([]);
      expect(await answerOf(proxy, 'cache-control')).toBe('public, max-age=7');
    });
  });

  test('applies reloadable keys while a file of another key is unusable, and names what the next start needs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'proxy-'));
    const yaml = (maxAge: string) =>
      `http: { clientMaxAge: ${maxAge} }\ncache: { snapshot: { file: ${folder}/snapshot } }`;
    const { proxy, rewrite } = await start(yaml('7s'));
    await rm(folder, { recursive: true });
    await rewrite(yaml('5s'));
    await expect.poll(() => answerOf(proxy, 'cache-control')).toBe('public, max-age=5');
    await expect
      .poll(() => linesOf(proxy, 'the next start would fail'))
      .toMatchObject([{ level: 'warn', key: 'cache.snapshot.file' }]);
  });

  test('changes nothing when a key that needs a restart has a new value that cannot be used', async () => {
    const { proxy, rewrite } = await start('http: { clientMaxAge: 7s }');
    await rewrite('http: { clientMaxAge: 5s }\ncache: { snapshot: { file: /nowhere/at/all/snapshot } }');
    await expect
      .poll(() => linesOf(proxy, 'reload failed, keeping the current configuration'))
      .toMatchObject([{ reason: expect.stringContaining('cache.snapshot.file') as string }]);
    expect(await answerOf(proxy, 'cache-control')).toBe('public, max-age=7');
  });

  test('does not affect requests in flight', async () => {
    const { proxy, rewrite } = await start('http: { clientMaxAge: 7s }');
    demo.hold.holdReplies('GET');
    onTestFinished(() => {
      demo.hold.sendHeld('GET');
    });
    const answer = ask(proxy.url, '/api/handles/21.T11998/alias');
    await expect.poll(() => demo.hold.size).toBe(1);
    await rewrite('http: { clientMaxAge: 5s }');
    await expect.poll(() => linesOf(proxy, READ)).toHaveLength(1);
    demo.hold.sendHeld('GET');
    expect((await answer).status).toBe(200);
  });
});
