// Runs the rows of wrong-setups.md: exit code, cause and remedy, /readyz, and the response to a reader.
import '../support/real-sockets.js';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http, { type OutgoingHttpHeaders } from 'node:http';
import { type AddressInfo, type Server, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError, processSources } from '../../src/config/load.js';
import type { loadStartConfig } from '../../src/app/config.js';
import { explainFailure, start } from '../../src/app/run.js';
import { ask } from '../support/ask.js';
import { ROOT } from '../support/built-proxy.js';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';
import { PATIENCE, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

interface SetUp {
  name: string;
  given: string;
  exitCode: string;
  cause: string;
  remedy: string;
  readyz: string;
  reader: string;
}

const NONE = '–';
const SET_UPS = tableRows(readDocument('test/process/wrong-setups.md'), '| set-up').map((row): SetUp => {
  const [name = '', given = '', exitCode = '', cause = '', remedy = '', readyz = '', reader = ''] =
    cells(row);
  return { name, given, exitCode, cause, remedy: remedy.replaceAll('\\', ''), readyz, reader };
});

const PASSWORD = 'hunter2-hunter2';
const folder = mkdtempSync(join(tmpdir(), 'wrong-setups-'));
const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});

let files = 0;
function fileOf(text: string): string {
  const path = join(folder, `file-${++files}`);
  writeFileSync(path, text);
  return path;
}

/** Returns the host and port without the scheme. */
const placeOf = ({ url }: { url: string }): string => new URL(url).host;

async function listen(server: Server): Promise<string> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const web = (status: number, headers: OutgoingHttpHeaders, body = '<h1>Welcome to nginx!</h1>') =>
  listen(http.createServer((_request, response) => response.writeHead(status, headers).end(body)));

const NGINX = { 'Content-Type': 'text/html', Server: 'nginx/1.22.1' };
const demo = await startDemoServer();
const certificate = await createCertificate();
const expired = await createCertificate({ notAfterDate: new Date(Date.now() - 1000) });
const early = await createCertificate({ notAfterDate: new Date(Date.now() + 24 * 3_600_000) });
const misnamed = await createCertificate({ ip: '192.0.2.1' });
const sshd = createServer((socket) => {
  socket.on('error', () => undefined).write('SSH-2.0-OpenSSH_9.2\r\n');
});

const pipe = join(folder, 'pipe');
execFileSync('mkfifo', [pipe]);

/** Replacements for names in braces. */
const places: Record<string, string> = {
  ...{ folder, pipe, text: fileOf('text'), password: PASSWORD },
  ...{ 'expired.pem': fileOf(expired.cert), 'another fingerprint': expired.fingerprint },
  ...{ demo: placeOf(demo), 'demo port': new URL(demo.url).port },
  tls: placeOf(await startDemoServer({ tls: certificate })),
  expired: placeOf(await startDemoServer({ tls: expired })),
  ...{ early: placeOf(await startDemoServer({ tls: early })), 'early.pem': fileOf(early.cert) },
  ...{ misnamed: placeOf(await startDemoServer({ tls: misnamed })), 'misnamed.pem': fileOf(misnamed.cert) },
  sshd: await listen(sshd),
  hanging: await listen(http.createServer(() => undefined)),
  ...{ 'nginx 200': await web(200, NGINX), 'nginx 404': await web(404, NGINX) },
  ...{ 'nginx 401': await web(401, NGINX), 'nginx 403': await web(403, NGINX) },
  'other JSON': await web(404, { 'Content-Type': 'application/json' }, '{"error":"not found"}'),
  redirect: await web(302, { Location: '/login' }, ''),
  busy: await web(
    503,
    { ...NGINX, 'Retry-After': '1' },
    '<title>503 Service Temporarily Unavailable</title>',
  ),
};

const filled = (text: string, own: Record<string, string> = {}): string =>
  text.replaceAll(/\{([a-z][\w. ]*)\}/gi, (whole, name: string) => own[name] ?? places[name] ?? whole);

/** Returns the environment of a row. Configuration text becomes a file named by CONFIG. */
async function environmentOf({ given }: SetUp): Promise<Record<string, string>> {
  const own = { port: String(await freePort()) };
  const variables = [...given.matchAll(/`([^`]*)`/g)].map(([, text = '']) => {
    if (text.startsWith('yaml ')) return ['CONFIG', fileOf(text.slice(5))] as const;
    const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(text) ?? [];
    return [name, filled(value, own)] as const;
  });
  const listeners = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' };
  return { ...listeners, UPSTREAM_URL: demo.url, ...PATIENCE, ...Object.fromEntries(variables) };
}

/** Returns a pattern that matches a text with gaps (…) anywhere in a line. */
function textLike(pattern: string): RegExp {
  const parts = filled(pattern === NONE ? '' : pattern).split('…');
  return new RegExp(parts.map((part) => part.trim().replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')).join('.*'));
}

/** Starts the service, and collects its log lines. */
async function startService(env: Record<string, string>) {
  const log: Record<string, unknown>[] = [];
  const write = (line: string): void => void log.push(JSON.parse(line) as Record<string, unknown>);
  return { log, service: await start({ ...processSources(), env }, { write }).starting };
}

describe('wrong set-up', () => {
  function testStarted(setUps: readonly SetUp[], targetOf: (setUp: SetUp) => string): void {
    test.concurrent.for(setUps)('$name', async (setUp, { expect: expectHere }) => {
      const { log, service } = await startService(await environmentOf(setUp));
      const said = (): Record<string, unknown> | undefined =>
        log.find((line) => line['msg'] === 'unknown variables are ignored') ??
        log.find((line) => line['msg'] === 'probe failed' && line['target'] === targetOf(setUp));
      const cause = (): string => {
        const { cause: text, variables } = (said() ?? {}) as { cause?: string; variables?: string[] };
        return text ?? variables?.join() ?? 'none';
      };
      const readyz = async (): Promise<string> =>
        (JSON.parse((await ask(service.adminUrl, '/readyz')).text) as { notReady: string[] }).notReady.join();
      try {
        await expectHere.poll(cause).toMatch(textLike(setUp.cause));
        expectHere(said()?.['remedy'] ?? cause()).toMatch(textLike(setUp.remedy));
        await expectHere.poll(readyz).toBe(setUp.readyz.replace('ready', ''));
        const { status } = await ask(service.url, '/api/handles/21.T11998/page');
        expectHere(String(status)).toBe(setUp.reader);
      } finally {
        await service.stop(0);
      }
    });
  }

  const started = SET_UPS.filter(({ exitCode }) => exitCode === NONE);
  const withRedis = started.filter(({ given }) => /REDIS_(?:URL|CLUSTER|SENTINELS)=/.test(given));

  describe('with a running process', () => {
    testStarted(
      started.filter((setUp) => !withRedis.includes(setUp)),
      () => 'upstream',
    );
  });

  describeWithRedis('with a running process and an unusable Redis', () => {
    const redises: RedisServer[] = [];
    beforeAll(async () => {
      const open = async (name: string, extra: string[] = []): Promise<RedisServer> => {
        const redis = await startRedis(extra);
        redises.push(redis);
        places[name] = placeOf(redis);
        return redis;
      };
      const user = ['--user', 'reader', 'on', `>${PASSWORD}`, '~*', '&*', '-@all', '+@read', '+info'];
      const { port } = await open('master');
      await Promise.all([
        open('locked Redis', ['--requirepass', PASSWORD, ...user, '+@connection']),
        open('replica', ['--replicaof', `127.0.0.1 ${port}`]),
        open('node', [
          '--cluster-enabled',
          'yes',
          '--cluster-port',
          String(await freePort()),
          '--dir',
          folder,
        ]),
        open('full Redis', ['--maxmemory', '1', '--maxmemory-policy', 'noeviction']),
      ]);
    });
    afterAll(() => Promise.all(redises.map((redis) => redis.stop())));
    testStarted(withRedis, () => 'redis');
  });

  describe('without a running process', () => {
    // A build drops code that seems to have no effect.
    let built: { loadStartConfig: typeof loadStartConfig };
    beforeAll(async () => {
      built = (await import(`${ROOT}/dist/config.js`)) as typeof built;
    });

    test.for(SET_UPS.filter(({ exitCode }) => exitCode !== NONE))('$name', async (setUp) => {
      let failure: unknown;
      const env = await environmentOf(setUp);
      await startService(env).then(
        ({ service }) => service.stop(0),
        (error: unknown) => (failure = error),
      );
      const { exitCode, text } = explainFailure(failure);
      if (failure instanceof ConfigError)
        expect(() => built.loadStartConfig({ ...processSources(), env })).toThrow(failure.message);
      expect(text).toMatch(textLike(setUp.cause));
      expect(text).toMatch(textLike(setUp.remedy));
      expect(String(exitCode)).toBe(setUp.exitCode);
      const others = text.split('\n').filter((line) => !line.includes('unknown variable'));
      expect(others.join('\n').trimEnd().split('\n').length, 'one sentence').toBeLessThanOrEqual(2);
    });
  });

  test('has more than 60 rows in the table', () => {
    expect(SET_UPS.length).toBeGreaterThan(60);
  });
});
