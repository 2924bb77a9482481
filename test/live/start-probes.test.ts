// The first minute of the built program: the logged probes of its servers, and its readiness.
import { describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import {
  type BuiltProxy,
  START_TIMEOUT_MS,
  startBuiltProxy,
  startConnectedProxy,
  startListeningProxy,
} from '../support/built-proxy.js';
import { createCertificate } from '../support/certificate.js';
import { builtCli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { PATIENCE, describeWithRedis, startRedis } from '../support/redis-server.js';
import { startSlowLine } from '../support/slow-line.js';
import { createControlledServer } from '../support/demo-control.js';
import { freePort } from '../support/free-port.js';

const PAGE = '/api/handles/21.T11998/page';
const demo = await startDemoServer();
const certificate = await createCertificate();

const nowhere = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`;
const readyz = async ({ adminUrl }: BuiltProxy): Promise<unknown> =>
  (JSON.parse((await ask(adminUrl, '/readyz')).text) as { notReady: string[] }).notReady;
const probes = (proxy: BuiltProxy): Record<string, unknown>[] =>
  proxy.logs().filter(({ msg }) => String(msg).startsWith('probe '));
/** Returns the probe log lines once there are `count` of them. */
async function probeLines(proxy: BuiltProxy, count: number): Promise<Record<string, unknown>[]> {
  await expect.poll(() => probes(proxy).length, { timeout: START_TIMEOUT_MS }).toBe(count);
  return probes(proxy);
}

/** Delay (ms) that lets the listener open long before the first contact with Redis. */
const LINE_MS = 10;
/** Number of starts that wait only a second for Redis, which may be too short on a busy machine. */
const MAX_STARTS = 5;

/** Starts a Handle server that can be stopped. */
async function startUpstream(port = 0): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createControlledServer();
  onTestFinished(server.close);
  const { url } = await server.listen(port);
  return { url, close: server.close };
}

describe('start probes of the built program', () => {
  test('cause no warning of Node.js for more than ten servers', async () => {
    const urls = await Promise.all(Array.from({ length: 11 }, nowhere));
    const servers = urls.map((url, at) => ({ prefixes: `21.T${at}`, url }));
    const proxy = await startListeningProxy({ UPSTREAMS: JSON.stringify(servers) });
    await probeLines(proxy, 11);
    expect(proxy.output()).not.toContain('MaxListeners');
  });

  test('log fingerprint, expiry, latency and version of a Handle server with a pinned certificate', async () => {
    const { url } = await startDemoServer({ tls: certificate });
    const { fingerprint } = certificate;
    const proxy = await startBuiltProxy({ UPSTREAM_URL: url, UPSTREAM_FINGERPRINT: fingerprint });
    expect(await probeLines(proxy, 1)).toEqual([
      expect.objectContaining({
        ...{ level: 'info', msg: 'probe succeeded', target: 'upstream', server: url, version: '2.11' },
        ...{ fingerprint, expires: expect.any(String) as string, ms: expect.any(Number) as number },
      }),
    ]);
    const { text } = await ask(proxy.adminUrl, '/metrics');
    expect(text).toMatch(
      /^handle_proxy_upstream_certificate_expiry_timestamp_seconds\{server="https:.*\} \d{10}$/m,
    );
  });

  describe('readiness at start', () => {
    test('lists the upstream in /readyz until its first response, and not afterwards', async () => {
      const port = await freePort();
      const UPSTREAM_URL = `http://127.0.0.1:${port}`;
      const proxy = await startListeningProxy({ UPSTREAM_URL });
      expect(await probeLines(proxy, 1)).toEqual([
        expect.objectContaining({ level: 'warn', msg: 'probe failed', code: 'UPSTREAM_UNREACHABLE' }),
      ]);
      await expect.poll(() => readyz(proxy)).toEqual(['upstream']);
      const { close } = await startUpstream(port);
      await expect.poll(() => readyz(proxy), { timeout: START_TIMEOUT_MS }).toEqual([]);
      expect(await probeLines(proxy, 2)).toEqual([
        expect.objectContaining({ msg: 'probe failed' }),
        expect.objectContaining({ msg: 'probe succeeded', version: '2.11' }),
      ]);
      await close();
      expect((await ask(proxy.url, PAGE)).status).toBe(502);
      expect(await readyz(proxy)).not.toContain('upstream');
    });

    test('does not wait for an unreachable secondary or Redis, and each server is logged once', async () => {
      const { probed } = demo;
      const secondary = await nowhere();
      const redis = (await nowhere()).replace('http:', 'redis:');
      const proxy = await startBuiltProxy({
        UPSTREAM_URL: demo.url,
        UPSTREAM_SECONDARIES: secondary,
        REDIS_URL: redis.replace('//', '//user:secret-word@'),
        REVERSE_LOOKUP_URL: demo.url,
      });
      const lines = await probeLines(proxy, 4);
      const byTarget = lines.map(({ level, target, server, code }) => [level, target, server, code]);
      expect(byTarget).toEqual(
        expect.arrayContaining([
          ['info', 'upstream', demo.url, undefined],
          ['warn', 'secondary', secondary, 'UPSTREAM_UNREACHABLE'],
          ['warn', 'redis', redis, 'ECONNREFUSED'],
          ['info', 'reverse lookup', demo.url, undefined],
        ]),
      );
      expect(lines.find(({ target }) => target === 'redis')).toMatchObject({
        remedy: 'check that the server runs at redis.url',
      });
      expect(demo.probed - probed).toBe(1);
      expect(proxy.output()).not.toContain('secret-word');
    });

    test('requires only that a secondary responds', async () => {
      const proxy = await startBuiltProxy({
        UPSTREAM_URL: await nowhere(),
        UPSTREAM_SECONDARIES: demo.url,
      });
      expect((await ask(proxy.url, PAGE)).status).toBe(200);
    });

    describeWithRedis('with Redis', () => {
      test('requires no upstream when Redis has entries', async () => {
        const redis = await startRedis();
        onTestFinished(redis.stop);
        const upstream = await startUpstream();
        const env = { UPSTREAM_URL: upstream.url, REDIS_URL: redis.url, ...PATIENCE };
        const first = await startConnectedProxy(env);
        await ask(first.url, PAGE);
        await upstream.close();
        const second = await startBuiltProxy(env);
        expect((await ask(second.url, PAGE)).status).toBe(200);
      });

      test('lets a newly ready instance serve entries that other instances stored in Redis', async () => {
        const redis = await startRedis();
        onTestFinished(redis.stop);
        const line = await startSlowLine(redis.port, LINE_MS);
        const env = { UPSTREAM_URL: demo.url, REDIS_KEY_PREFIX: 'start:', ...PATIENCE };
        const first = await startConnectedProxy({ ...env, REDIS_URL: redis.url });
        await ask(first.url, PAGE);
        const asked: number[] = [];
        const slow = { ...env, REDIS_URL: `redis://127.0.0.1:${line.port}` };
        while (!asked.includes(0) && asked.length <= MAX_STARTS) {
          // The last start waits for Redis without a limit.
          const start = asked.length < MAX_STARTS ? startBuiltProxy : startConnectedProxy;
          const proxy = await start(slow);
          demo.reset();
          const answers = await Promise.all(Array.from({ length: 8 }, () => ask(proxy.url, PAGE)));
          expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
          asked.push(demo.askedFor('21.T11998/page'));
          await proxy.stop();
        }
        expect(asked).toContain(0);
      });
    });
  });

  describe('check-config --probe', () => {
    test('prints the response of each server, and exits with 0', async () => {
      const { url } = await startDemoServer({ tls: certificate });
      const env = {
        UPSTREAM_URL: url,
        UPSTREAM_FINGERPRINT: certificate.fingerprint,
        REVERSE_LOOKUP_URL: demo.url,
        // A response that took longer would print a warning.
        ...{ UPSTREAM_STALE_AFTER: '59s', UPSTREAM_TIMEOUT: '60s' },
      };
      const { code, stdout, stderr } = await builtCli(['check-config', '--probe'], env);
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toContain('upstream.url');
      expect(stdout).toMatch(
        new RegExp(
          `\\n\\nHandle server \\(${url}\\)\\n  Probe        succeeded in \\d+ ms\\n  Version      2\\.11\\n` +
            `  Certificate  SHA-256 ${certificate.fingerprint}\\n  Expires      \\d{4}-\\d\\d-\\d\\dT\\S+Z\\n\\n` +
            `Reverse lookup \\(${demo.url}\\)\\n  Probe  succeeded in \\d+ ms\\n$`,
        ),
      );
    });

    test('names the failed server and the cause, and exits with 1', async () => {
      const UPSTREAM_URL = await nowhere();
      const { code, stdout, stderr } = await builtCli(['check-config', '--probe'], { UPSTREAM_URL });
      expect([code, stderr]).toEqual([1, '1 of 1 servers failed the probe.\n']);
      expect(stdout).toContain('Cause   the connection was refused (ECONNREFUSED)\n');
      expect(stdout).toContain('Remedy  check that the server runs at upstream.url\n');
      const json = await builtCli(['check-config', '--probe', '--json'], { UPSTREAM_URL });
      expect(json.code).toBe(1);
      expect(JSON.parse(json.stdout)).toMatchObject({
        keys: expect.any(Array) as unknown,
        probes: [{ target: 'upstream', server: UPSTREAM_URL, failure: { code: 'UPSTREAM_UNREACHABLE' } }],
      });
    });

    test('prints the variable that pins a self-signed certificate', async () => {
      const { url } = await startDemoServer({ tls: certificate });
      const { code, stdout } = await builtCli(['check-config', '--probe'], { UPSTREAM_URL: url });
      expect(code).toBe(1);
      const [, line = ''] = /^ {2}To pin it {4}(UPSTREAM_FINGERPRINT=\S+)$/m.exec(stdout) ?? [];
      expect(line).toBe(`UPSTREAM_FINGERPRINT=${certificate.fingerprint}`);
      const [name = '', value = ''] = line.split('=');
      expect((await builtCli(['check-config', '--probe'], { UPSTREAM_URL: url, [name]: value })).code).toBe(
        0,
      );
    });

    test('probes nothing when the configuration is invalid, and exits with 2', async () => {
      expect((await builtCli(['check-config', '--probe'], {})).code).toBe(2);
    });

    describeWithRedis('with Redis', () => {
      test('prints the Redis version when the password is correct, and never prints a password', async () => {
        const redis = await startRedis(['--requirepass', 'secret-word']);
        onTestFinished(redis.stop);
        const probe = (password: string) =>
          builtCli(['check-config', '--probe', '--json'], {
            UPSTREAM_URL: demo.url,
            REDIS_URL: redis.url.replace('//', `//:${password}@`),
          });
        const [right, wrong] = await Promise.all([probe('secret-word'), probe('another-word')]);
        expect([right.code, wrong.code]).toEqual([0, 1]);
        expect((JSON.parse(right.stdout) as { probes: object[] }).probes).toContainEqual(
          expect.objectContaining({ target: 'redis', version: expect.any(String) as string }),
        );
        expect(right.stdout + wrong.stdout).not.toMatch(/secret-word|another-word/);
      });
    });
  });
});
