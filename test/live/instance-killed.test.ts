// An instance is one process: `kill -9` under load leaves no child process and no open port.
import { readFileSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { putNumbered } from '../support/demo-writes.js';
import { openSocket } from '../support/raw-socket.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { freePort } from '../support/free-port.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/killed';

/**
 * Returns the environment of a process, or an empty list when it has ended or belongs to a different user.
 */
function variablesOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Returns the ids of processes with this environment variable, which child processes inherit. */
const processesWith = (variable: string): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && variablesOf(name).includes(variable))
    .map(Number);

describeWithRedis('killed instance', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('leaves no child process and no open port', async () => {
    const [port = 0, adminPort = 0, tcpPort = 0, udpPort = 0] = await Promise.all(
      Array.from({ length: 4 }, freePort),
    );
    const env = {
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      NATIVE_TCP_PORT: String(tcpPort),
      NATIVE_UDP_PORT: String(udpPort),
      REDIS_URL: redis.url,
      UPSTREAM_URL: demo.url,
    };
    const proxy = await startConnectedProxy(env);
    const mark = `PORT=${port}`;
    expect(processesWith(mark)).toEqual([proxy.pid]);
    await openSocket(proxy.url);
    demo.hold.holdReplies('PUT');
    const written = putNumbered(proxy.url, PATH, 1).catch((error: unknown) => error);
    await expect.poll(() => demo.hold.size).toBe(1);
    expect(await proxy.stop('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
    expect(await written).toBeInstanceOf(Error);
    demo.hold.sendHeld('PUT');
    expect(processesWith(mark)).toEqual([]);
    const next = await startConnectedProxy(env);
    expect(next.url).toBe(proxy.url);
    expect((await ask(next.url, PATH)).status).toBe(200);
  });
});
