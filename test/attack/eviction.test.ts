// Rejected and unanswered writes: they do not evict a hot record.
import '../support/real-sockets.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LEASE_MS } from '../../src/cache/coherence/lease.js';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startConnectedProxy, useBuiltProxies } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { numbered } from '../support/demo-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { HANDLE, PATH } from '../support/upstream.js';

const ROUNDS = 10;
const READS_PER_WRITE = 20;

const demo = await startDemoServer();

interface Attack {
  method: string;
  headers?: Record<string, string>;
  body?: string;
}

const ATTACKS: [what: string, attack: Attack][] = [
  ['a POST', { method: 'POST' }],
  ['a PUT without credentials', { method: 'PUT', body: '[]' }],
  ['a PUT with a wrong password', { method: 'PUT', headers: { Authorization: 'Basic eDp5' }, body: '[]' }],
  [
    'a PUT with clientCert="true"',
    { method: 'PUT', headers: { Authorization: 'Handle clientCert="true"' }, body: '[]' },
  ],
  ['a DELETE without credentials', { method: 'DELETE' }],
];

interface Figures {
  hits: number;
  reads: number;
  /** Median read latency in ms. */
  p50: number;
  p99: number;
}

async function readHit(url: string): Promise<boolean> {
  const { headers } = await ask(url, PATH);
  return /; hit; ttl=\d+$/.test(String(headers['cache-status']));
}

/**
 * Sends reads in sequence while each write of `attack` is in flight. Returns hits and latencies, of a time in which the machine
 * did not stand still: an instance that has missed the renewal of its lease has no hits, also without an attack.
 */
async function readDuring(url: string, attack: (() => Promise<unknown>) | undefined): Promise<Figures> {
  await expect.poll(() => readHit(url)).toBe(true);
  const waits: number[] = [];
  let [hits, lastAt, longestMs] = [0, performance.now(), 0];
  for (let round = 0; round < ROUNDS; round++) {
    const attacking = attack?.();
    for (let read = 0; read < READS_PER_WRITE; read++) {
      const askedAt = performance.now();
      if (await readHit(url)) hits++;
      waits.push(performance.now() - askedAt);
      longestMs = Math.max(longestMs, performance.now() - lastAt);
      lastAt = performance.now();
    }
    await attacking;
  }
  if (longestMs > LEASE_MS / 2) return readDuring(url, attack);
  waits.sort((one, other) => one - other);
  const at = (share: number): number => Number(waits[Math.floor(share * waits.length)]!.toFixed(2));
  return { hits, reads: waits.length, p50: at(0.5), p99: at(0.99) };
}

function print(what: string, { hits, reads, p50, p99 }: Figures): void {
  process.stdout.write(`${what}: hits ${hits} of ${reads}, median ${p50} ms, 99th percentile ${p99} ms\n`);
}

async function startHot(start: () => Promise<BuiltProxy>): Promise<BuiltProxy> {
  demo.put(HANDLE, numbered(1));
  const proxy = await start();
  for (let count = 0; count < 3; count++) await ask(proxy.url, PATH);
  return proxy;
}

const env = { UPSTREAM_URL: demo.url, DELETION_HANDLES: 'true', DELETION_VALUES: 'true' };

const started = useBuiltProxies();

describe('rejected and unanswered writes', () => {
  test('cost a single instance at most 1% of its hits', async () => {
    const proxy = await startHot(() => started(env));
    print('nobody writes', await readDuring(proxy.url, undefined));
    for (const [what, attack] of ATTACKS) {
      const figures = await readDuring(proxy.url, () => ask(proxy.url, PATH, attack));
      print(what, figures);
      expect(figures.hits, what).toBeGreaterThanOrEqual(0.99 * figures.reads);
    }
  });

  test('cost a single instance no hits while the Handle server does not respond', async () => {
    const proxy = await startHot(() => started(env));
    demo.hold.holdReplies('PUT');
    const writing = ask(proxy.url, PATH, { method: 'PUT', body: '[]' });
    await expect.poll(() => demo.hold.size).toBe(1);
    const figures = await readDuring(proxy.url, undefined);
    print('a PUT that is not answered', figures);
    expect(figures.hits).toBe(figures.reads);
    demo.hold.sendHeld('PUT');
    await writing;
  });

  describeWithRedis('with two instances on one Redis', () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    test('cost the reading instance at most 1% of its hits, and do not evict the entry in Redis', async () => {
      const start = (): Promise<BuiltProxy> => startConnectedProxy({ ...env, REDIS_URL: redis.url });
      const [writer, reader] = await Promise.all([startHot(start), startHot(start)]);
      print('nobody writes', await readDuring(reader.url, undefined));
      for (const [what, attack] of ATTACKS) {
        const figures = await readDuring(reader.url, () => ask(writer.url, PATH, attack));
        print(what, figures);
        expect(figures.hits, what).toBeGreaterThanOrEqual(0.99 * figures.reads);
      }
      const asked = demo.askedFor(HANDLE);
      const late = await start();
      expect((await ask(late.url, PATH)).headers['cache-status']).toContain('detail=redis');
      expect(demo.askedFor(HANDLE)).toBe(asked);
    });
  });
});
