// Fifty clients update one handle concurrently through two instances on one Redis: no update is lost.
import '../support/real-sockets.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mapLimited } from '../../src/v2/collection.js';
import { startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { type AskV2, askV2, gist } from '../support/v2.js';

const CLIENTS = 50;
const NAME = '/21.T11998/COUNTER';

describeWithRedis('fifty concurrent ePIC v2 clients on two instances', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  /** Starts an instance in a separate process and connects it to Redis. */
  async function startInstance(upstreamUrl: string): Promise<AskV2> {
    // Fifty clients wait longer than real clients would, and none may receive a 503.
    const env = fixed({ v2: { lockWaitMs: 60_000 } });
    const proxy = await startConnectedProxy({ REDIS_URL: redis.url, UPSTREAM_URL: upstreamUrl, ...env });
    return askV2(proxy.url);
  }

  async function startTwo(): Promise<[AskV2, AskV2]> {
    const { url } = await startDemoServer();
    return [await startInstance(url), await startInstance(url)];
  }

  const count = (value: number): unknown[] => [{ type: 'COUNT', parsed_data: String(value) }];

  const look = async (v2: AskV2): Promise<{ value: number; tag: string }> => {
    const answer = await v2(NAME);
    return { value: Number(gist(answer)[0]?.[2]), tag: answer.headers.etag ?? '' };
  };

  /** Sends an increment, again after a 503: when the machine stalls, Redis is late, and the write is not executed. */
  async function addOneTo(v2: AskV2, { value, tag }: Awaited<ReturnType<typeof look>>): Promise<number> {
    let status = 503;
    while (status === 503)
      ({ status } = await v2(NAME, {
        method: 'PUT',
        body: count(value + 1),
        headers: { 'If-Match': tag },
      }));
    return status;
  }

  /** Repeats a conditional increment until it succeeds. */
  async function addOne(v2: AskV2): Promise<void> {
    let status = 412;
    while (status === 412) status = await addOneTo(v2, await look(v2));
    expect(status).toBe(204);
  }

  test('succeed only once with the same If-Match, and increment a counter to fifty by retrying', async () => {
    const [one, other] = await startTwo();
    expect((await one(NAME, { method: 'PUT', body: count(0) })).status).toBe(201);
    const clients = Array.from({ length: CLIENTS }, (_, at) => (at % 2 === 0 ? one : other));
    const seen = await Promise.all(clients.map(look));
    const statuses = await Promise.all(clients.map((v2, at) => addOneTo(v2, seen[at]!)));
    const losers = clients.filter((_, at) => statuses[at] === 412);
    expect([statuses.filter((status) => status === 204).length, losers.length]).toEqual([1, CLIENTS - 1]);
    // Ten concurrent clients still collide, but rarely enough for retries to succeed.
    await mapLimited(losers, 10, addOne);
    expect((await look(other)).value).toBe(CLIENTS);
  });
});
