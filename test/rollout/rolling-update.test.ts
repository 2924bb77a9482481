// A rolling update: three instances behind HAProxy are stopped and started one after the other, under load with writes.
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { WRITE_HEADERS, numberIn, numbered, numberedBody } from '../support/demo-writes.js';
import { startDemoServer } from '../support/demo.js';
import { itWithProgram, testWithReusePort } from '../support/programs.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { History } from '../support/staleness.js';
import { type Front, startBalancer } from '../support/tls-front.js';
import { freePort } from '../support/free-port.js';

/** How often all three are updated. Each restart takes seconds: more of them are for a quiet machine. */
const UPDATES = Number(process.env['ROLLING_UPDATES'] ?? 1);
const INSTANCES = [0, 1, 2];
const READERS = 6;
const WRITERS = 2;

const demo = await startDemoServer();
const handleOf = (writer: number, at: number): string => `21.T11998/rolling-${writer}-${at % 3}`;

interface Load {
  answers: () => number;
  writes: () => number;
  /** Ends it when the requests in flight have been answered, and returns those that failed. */
  stop: () => Promise<string[]>;
}

/** Readers on kept and on new connections, and writers of a few handles each. */
function startLoad(front: Front, history: History): Load {
  const counts = { answers: 0, writes: 0 };
  const failures: string[] = [];
  let isRunning = true;
  const repeat = async (step: (at: number) => Promise<unknown>): Promise<void> => {
    for (let at = 0; isRunning; at++) {
      await step(at).catch((error: unknown) => failures.push(String(error)));
      counts.answers++;
      await pause(5);
    }
  };
  const read = async (handle: string, keepAlive: boolean): Promise<number> => {
    const { status, text } = await front.ask(`/api/handles/${handle}`, { keepAlive });
    if (status !== 200) throw new Error(`GET ${handle}: ${status} ${text.slice(0, 200)}`);
    return numberIn({ text });
  };
  const write = async (handle: string, count: number): Promise<void> => {
    const question = { method: 'PUT', headers: WRITE_HEADERS, body: numberedBody(count), keepAlive: true };
    const { status, text } = await front.ask(`/api/handles/${handle}`, question);
    if (status !== 200) throw new Error(`PUT ${handle}: ${status} ${text.slice(0, 200)}`);
    history.acknowledged(handle, count);
    counts.writes++;
  };
  const running = Promise.all([
    ...Array.from({ length: READERS }, (_, reader) =>
      repeat((at) => {
        const handle = handleOf(reader % WRITERS, at);
        return history.read(handle, () => read(handle, reader < READERS / 2));
      }),
    ),
    ...Array.from({ length: WRITERS }, (_, writer) => repeat((at) => write(handleOf(writer, at), at + 1))),
  ]);
  return {
    answers: () => counts.answers,
    writes: () => counts.writes,
    stop: async () => {
      isRunning = false;
      await running;
      return failures;
    },
  };
}

/** Whether the balancer has sent it requests. */
const isUsed = async ({ adminUrl }: BuiltProxy): Promise<boolean> =>
  /^handle_proxy_requests_total\{.*\} [1-9]/m.test((await ask(adminUrl, '/metrics')).text);

describeWithRedis('three instances behind HAProxy', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const update = async (ports: readonly (readonly [number, number])[], env = {}): Promise<void> => {
    const start = ([port, adminPort]: readonly [number, number]): Promise<BuiltProxy> =>
      startConnectedProxy({
        PORT: String(port),
        ADMIN_PORT: String(adminPort),
        UPSTREAM_URL: demo.url,
        REDIS_URL: redis.url,
        HTTP_TRUSTED_PROXIES: 'loopback',
        // Where the machine stands still, an instance may be cut off from Redis, which may show an old record then.
        REDIS_LOST_MAX_AGE: '0s',
        ...env,
      });
    for (const writer of [0, 1]) for (const at of [0, 1, 2]) demo.put(handleOf(writer, at), numbered(0));
    const instances = await Promise.all(ports.map(start));
    const front = await startBalancer(
      ports.map(([port]) => `127.0.0.1:${port}`),
      ports.map(([, adminPort]) => adminPort),
    );
    // Loads and writes are in flight when a signal comes.
    demo.delay(20);
    const history = new History();
    const load = startLoad(front, history);
    for (let update = 0; update < UPDATES; update++) {
      for (const [at, place] of ports.entries()) {
        const before = { answers: load.answers(), writes: load.writes() };
        await expect.poll(() => load.answers() - before.answers).toBeGreaterThan(100);
        await expect.poll(() => load.writes() - before.writes).toBeGreaterThan(10);
        expect(await instances[at]?.stop()).toEqual({ code: 0, signal: null });
        const started = await start(place);
        instances[at] = started;
        await expect.poll(() => isUsed(started)).toBe(true);
      }
    }
    expect(await load.stop()).toEqual([]);
    expect(history.delays().filter((delay) => delay > 0)).toEqual([]);
    expect(history.reads).toBeGreaterThan(300);
  };

  itWithProgram(
    'haproxy',
    'are updated one by one: no request fails, none is answered with an old record',
    async () => {
      await update(
        await Promise.all(INSTANCES.map(async () => [await freePort(), await freePort()] as const)),
      );
    },
  );

  testWithReusePort('are updated one by one on one port: no request fails', async () => {
    const port = await freePort();
    const ports = await Promise.all(INSTANCES.map(async () => [port, await freePort()] as const));
    await update(ports, { SERVER_REUSE_PORT: 'true' });
  });
});
