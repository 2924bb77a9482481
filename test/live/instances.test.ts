// While the Handle server is down, an instance with the default configuration serves every cached record, and
// so does each of two instances that share a Redis.
import { describe, expect, onTestFinished, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { createControlledServer } from '../support/demo-control.js';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { describeWithRedis, startRedis } from '../support/redis-server.js';

const HANDLES = Array.from({ length: 100 }, (_, at) => `21.T11998/instances-${at}`);

async function startHandleServer(): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createControlledServer();
  onTestFinished(server.close);
  const { url } = await server.listen(0);
  for (const handle of HANDLES) server.put(handle, [textValue(1, 'URL', 'https://example.org/')]);
  return { url, close: server.close };
}

/** Returns the number of handles that are answered, each requested over a separate connection. */
async function countAnswered({ url }: BuiltProxy): Promise<number> {
  const answers = await Promise.all(HANDLES.map((handle) => ask(url, `/api/handles/${handle}`)));
  return answers.filter(({ status }) => status === 200).length;
}

/** Repeats the reads, because on a stalled machine a load may time out, and a Redis lease may end briefly. */
const answersAll = (proxy: BuiltProxy): Promise<void> =>
  expect.poll(() => countAnswered(proxy)).toBe(HANDLES.length);

describe('instance whose Handle server is down', () => {
  test('serves, with the default configuration, every record that it has read', async () => {
    const { url, close } = await startHandleServer();
    const proxy = await startBuiltProxy({ UPSTREAM_URL: url });
    await answersAll(proxy);
    await close();
    expect(await countAnswered(proxy)).toBe(HANDLES.length);
  });

  describeWithRedis('two instances on one Redis', () => {
    test('serve every record that either of them has read', async () => {
      const redis = await startRedis();
      onTestFinished(redis.stop);
      const { url, close } = await startHandleServer();
      const env = { UPSTREAM_URL: url, REDIS_URL: redis.url };
      const [one, other] = [await startConnectedProxy(env), await startConnectedProxy(env)];
      await answersAll(one);
      await close();
      expect(await countAnswered(one)).toBe(HANDLES.length);
      await answersAll(other);
    });
  });
});
