// A Redis with a password or TLS: instances without access log the reason and continue without Redis.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startBuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { ask } from '../support/ask.js';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { freePort } from '../support/free-port.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';
const SECRET = 'hunter2-hunter2';

const common = { UPSTREAM_URL: demo.url, LOG_LEVEL: 'trace' };

async function sharesWithNext(env: Record<string, string>): Promise<void> {
  const one = await startConnectedProxy({ ...common, ...env });
  await ask(one.url, PATH);
  const other = await startConnectedProxy({ ...common, ...env });
  demo.reset();
  expect((await ask(other.url, PATH)).headers['cache-status']).toContain('detail=redis');
  expect(demo.asked).toBe(0);
  expect(one.output()).not.toContain(SECRET);
}

/** Asserts that the proxy serves from memory, and logs each Redis error once. */
async function goesOnWithout(env: Record<string, string>, reason: RegExp): Promise<void> {
  const proxy = await startBuiltProxy({ ...common, ...env });
  const reasons = (): unknown[] =>
    proxy
      .logs()
      .filter(({ msg }) => msg === 'redis error')
      .map(({ reason: given }) => given);
  await expect.poll(reasons).toContainEqual(expect.stringMatching(reason));
  expect((await ask(proxy.url, PATH)).status).toBe(200);
  // Redis counts as down after several failed attempts to join the other instances.
  await expect
    .poll(async () => (await ask(proxy.url, PATH)).headers['cache-status'], { timeout: 60_000 })
    .toContain('hit');
  expect(new Set(reasons()).size, 'each reason once').toBe(reasons().length);
  expect(proxy.output()).not.toContain(SECRET);
  await proxy.stop();
  expect(proxy.output(), 'no word of a library, and no stack').not.toMatch(/\[WARN]|Unhandled|\n {4}at /);
}

/** Relays to a Redis, but without the `run_id` of its INFO. */
async function startNamelessRelay(toPort: number): Promise<number> {
  const server = createServer((near) => {
    const far = connect(toPort, '127.0.0.1');
    near.on('error', () => undefined).once('close', () => far.destroy());
    far.on('error', () => undefined).once('close', () => near.destroy());
    near.pipe(far);
    far.on('data', (bytes) => near.write(bytes.toString('latin1').replace('run_id:', 'nothing'), 'latin1'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

describe('Redis login', () => {
  describeWithRedis('with access control', () => {
    let folder: string;
    const fileOf = async (name: string, text: string): Promise<string> => {
      const path = join(folder, name);
      await writeFile(path, text);
      return path;
    };
    const serve = async (extra: string[]): Promise<RedisServer> => {
      const redis = await startRedis(extra);
      onTestFinished(() => redis.stop());
      return redis;
    };
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'redis-login-'));
    });
    afterAll(() => rm(folder, { recursive: true }));

    describe('client with a password', () => {
      test('connects with the correct password', async () => {
        const { port } = await serve(['--requirepass', SECRET]);
        await sharesWithNext({ REDIS_URL: `redis://:${SECRET}@127.0.0.1:${port}` });
      });

      test('connects as a user that has only the required permissions', async () => {
        const { port } = await serve([
          ...['--user', 'default', 'off', '--user', 'proxy', 'on', `>${SECRET}`, '~hrp:*', '&hrp:*', '-@all'],
          ...[
            '+@read',
            '+@write',
            '+eval',
            '+evalsha',
            '+publish',
            '+subscribe',
            '+@connection',
            '+info',
            '+time',
          ],
        ]);
        await sharesWithNext({ REDIS_URL: `redis://proxy:${SECRET}@127.0.0.1:${port}` });
      });

      test.each([
        ['a wrong password', `x:${SECRET}@`, /WRONGPASS/],
        ['no password', '', /NOAUTH/],
      ])('logs the rejection of %s', async (_what, login, reason) => {
        const { port } = await serve(['--requirepass', 'another-password']);
        await goesOnWithout({ REDIS_URL: `redis://${login}127.0.0.1:${port}` }, reason);
      });
    });

    describe('client with TLS', () => {
      const startTls = async (): Promise<{ port: number; caFile: string }> => {
        const port = await freePort();
        const { key, cert } = await createCertificate();
        const caFile = await fileOf(`${port}.pem`, cert);
        const keyFile = await fileOf(`${port}.key`, key);
        await serve([
          ...['--tls-port', String(port), '--tls-cert-file', caFile, '--tls-key-file', keyFile],
          ...['--tls-ca-cert-file', caFile, '--tls-auth-clients', 'no'],
        ]);
        return { port, caFile };
      };

      test('connects with the CA in redis.caFile', async () => {
        const { port, caFile } = await startTls();
        await sharesWithNext({ REDIS_URL: `rediss://127.0.0.1:${port}`, REDIS_CA_FILE: caFile });
      });

      test('logs the rejection when the CA is missing or different', async () => {
        const { port } = await startTls();
        await goesOnWithout(
          { REDIS_URL: `rediss://:${SECRET}@127.0.0.1:${port}` },
          /self-signed certificate/,
        );
        const { cert } = await createCertificate();
        const another = { REDIS_CA_FILE: await fileOf('another.pem', cert) };
        await goesOnWithout({ REDIS_URL: `rediss://127.0.0.1:${port}`, ...another }, /certificate/);
      });
    });
  });

  describeWithRedis('with a server that resembles Redis', () => {
    test('logs that its INFO does not name its run, and does not use it, because a restart could not be noticed', async () => {
      const redis = await startRedis();
      onTestFinished(() => redis.stop());
      const port = await startNamelessRelay(redis.port);
      await goesOnWithout({ REDIS_URL: `redis://127.0.0.1:${port}` }, /run_id/);
    });
  });

  test('logs an unreachable Redis at start', async () => {
    const port = await freePort();
    await goesOnWithout({ REDIS_URL: `redis://:${SECRET}@127.0.0.1:${port}` }, /ECONNREFUSED/);
  });

  test.each([
    ['HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n', /a web server responds there, not Redis|closed/i],
    [
      'an error that quotes the command',
      "-ERR unknown command 'AUTH', with args beginning with: 'SECRET'\r\n",
      /unknown command/,
    ],
  ])('logs a server that responds with %s, and does not use it', async (_what, answer, reason) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () => socket.write(answer.replace('SECRET', SECRET)));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    await goesOnWithout({ REDIS_URL: `redis://:${SECRET}@127.0.0.1:${port}` }, reason);
  });
});
