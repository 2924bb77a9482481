// Reads on other instances after an acknowledged write: they return the new record.
import '../support/real-sockets.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { History, percentile, report } from '../support/staleness.js';

const demo = await startDemoServer();
const HANDLES = Array.from({ length: 5 }, (_, at) => `21.T11998/shared-${at}`);
const INSTANCES = 3;
const WRITES = 60;

describeWithRedis('read-after-write across built proxies on one Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const startOne = (): Promise<BuiltProxy> =>
    startConnectedProxy({ REDIS_URL: redis.url, UPSTREAM_URL: demo.url });

  test('returns an acknowledged write on each of three instances', async () => {
    for (const handle of HANDLES) demo.put(handle, numbered(0));
    const proxies = await Promise.all(Array.from({ length: INSTANCES }, startOne));
    const history = new History();
    const readOn = ({ url }: BuiltProxy, handle: string): Promise<number> =>
      history.read(handle, async () => numberIn(await ask(url, `/api/handles/${handle}`)));
    let isWriting = true;
    const readers = proxies.map(async (proxy) => {
      for (let turn = 0; isWriting; turn++) await readOn(proxy, HANDLES[turn % HANDLES.length]!);
    });
    for (let write = 0; write < WRITES; write++) {
      const handle = HANDLES[write % HANDLES.length]!;
      const made = Math.floor(write / HANDLES.length) + 1;
      const { url } = proxies[(write * 7) % INSTANCES]!;
      expect((await putNumbered(url, `/api/handles/${handle}`, made)).status).toBe(200);
      history.acknowledged(handle, made);
      await Promise.all(proxies.map((proxy) => readOn(proxy, handle)));
    }
    isWriting = false;
    await Promise.all(readers);
    const delays = history.delays();
    report(`${INSTANCES} instances: old record still shown after the acknowledgement`, delays);
    for (const proxy of proxies) {
      expect(proxy.output(), 'no credentials in the log').not.toContain(WRITE_HEADERS.Authorization.slice(6));
    }
    expect(delays).toHaveLength(WRITES);
    expect(percentile(delays, 1)).toBe(0);
  });
});
