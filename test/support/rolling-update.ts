// Restarts instances behind a web server in sequence, under a load of reads and writes.
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ControlledServer } from './demo-control.js';
import { ask } from './ask.js';
import { type BuiltProxy, startConnectedProxy } from './built-proxy.js';
import { WRITE_HEADERS, numberIn, numbered, numberedBody } from './demo-writes.js';
import type { FrontName } from './front-configs.js';
import type { RedisServer } from './redis-server.js';
import { History } from './staleness.js';
import { type Front, type InstancePlace, startBalancer } from './tls-front.js';

const READERS = 6;
const WRITERS = 2;

const handleOf = (writer: number, at: number): string => `21.T11998/rolling-${writer}-${at % 3}`;

interface Load {
  answers: () => number;
  writes: () => number;
  /** Stops the load, waits for in-flight requests, and resolves with the failures. */
  stop: () => Promise<string[]>;
}

/** Starts readers on kept-alive and new connections, and writers with a few handles each. */
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

/** Whether the web server has sent requests to the proxy. */
const isUsed = async ({ adminUrl }: BuiltProxy): Promise<boolean> =>
  /^handle_proxy_requests_total\{.*\} [1-9]/m.test((await ask(adminUrl, '/metrics')).text);

interface Update {
  demo: ControlledServer & { url: string };
  redis: RedisServer;
  places: readonly InstancePlace[];
  /** Instance numbers in restart order. */
  order: readonly number[];
  front: FrontName;
  env?: Record<string, string>;
}

/**
 * Restarts the instances in sequence, and describes the failed requests. Fails if a read returns a record older
 * than the last acknowledged write.
 */
export async function updateOneByOne(update: Update): Promise<string[]> {
  const { demo, redis, places, order, env } = update;
  const start = ({ host = '127.0.0.1', port, adminPort }: InstancePlace): Promise<BuiltProxy> =>
    startConnectedProxy({
      HOST: host,
      ADMIN_HOST: host,
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      UPSTREAM_URL: demo.url,
      REDIS_URL: redis.url,
      HTTP_TRUSTED_PROXIES: 'loopback',
      // On a busy machine, an instance may lose Redis, and would then return an old record.
      REDIS_DISCONNECTED_MAX_AGE: '0s',
      ...env,
    });
  for (const writer of [0, 1]) for (const at of [0, 1, 2]) demo.put(handleOf(writer, at), numbered(0));
  const instances = await Promise.all(places.map(start));
  const front = await startBalancer(update.front, places);
  // Slows the server down, so that loads and writes are in flight when a signal arrives.
  demo.delay(20);
  const history = new History();
  const load = startLoad(front, history);
  for (const at of order) {
    const before = { answers: load.answers(), writes: load.writes() };
    await expect.poll(() => load.answers() - before.answers).toBeGreaterThan(100);
    await expect.poll(() => load.writes() - before.writes).toBeGreaterThan(10);
    expect(await instances[at]?.stop()).toEqual({ code: 0, signal: null });
    const started = await start(places[at]!);
    instances[at] = started;
    await expect.poll(() => isUsed(started)).toBe(true);
  }
  const failures = await load.stop();
  expect(history.delays().filter((delay) => delay > 0)).toEqual([]);
  expect(history.reads).toBeGreaterThan(100 * order.length);
  return failures;
}
