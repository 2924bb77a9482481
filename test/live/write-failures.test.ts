// Writes of unknown outcome: the connection is reset or the response is late.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { numberIn, numbered, putNumbered } from '../support/demo-writes.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH } from '../support/upstream.js';

const demo = await startDemoServer();

async function startAndRead(env: Record<string, string> = {}): Promise<Proxy> {
  demo.heal();
  demo.put(HANDLE, numbered(1));
  demo.reset();
  const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...env });
  expect(numberIn(await proxy.ask(PATH))).toBe(1);
  return proxy;
}

describe('write of unknown outcome', () => {
  test.each([
    ['the connection is reset', 'reset', 502, {}],
    ['no response arrives in time', 'hang', 504, { UPSTREAM_WRITE_TIMEOUT: '100ms' }],
  ] as const)(
    'causes a reload that returns the written record when %s',
    async (_what, fault, status, env) => {
      const proxy = await startAndRead(env);
      demo.fail(fault, { times: 1 });
      const answer = await putNumbered(proxy.url, PATH, 2);
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 2, handle: HANDLE });
      expect(demo.askedFor(HANDLE), 'a write is never sent twice').toBe(2);
      for (const count of [3, 4]) {
        expect(numberIn(await proxy.ask(PATH))).toBe(2);
        expect(demo.askedFor(HANDLE)).toBe(count);
      }
    },
  );

  test.each([
    ['reset', {}],
    ['hang', { UPSTREAM_WRITE_TIMEOUT: '100ms' }],
  ] as const)(
    'leaves the old record available as stale only while the upstream fails (%s)',
    async (fault, env) => {
      const proxy = await startAndRead({ ...env, UPSTREAM_RETRY_AFTER: '0s' });
      demo.fail(fault, { times: 1 });
      await putNumbered(proxy.url, PATH, 2);
      demo.fail('error', { times: 1 });
      const stale = await proxy.ask(PATH);
      expect(numberIn(stale)).toBe(1);
      expect(stale.headers['cache-status']).toContain('detail=error');
      expect(numberIn(await proxy.ask(PATH))).toBe(2);
    },
  );

  test('is aborted at the timeout when the response body stalls, after which the record is reloaded', async () => {
    const proxy = await startAndRead({ UPSTREAM_WRITE_TIMEOUT: '100ms' });
    demo.fail('stall', { times: 1 });
    await expect(putNumbered(proxy.url, PATH, 2)).rejects.toThrow();
    expect(numberIn(await proxy.ask(PATH))).toBe(2);
  });

  test('causes a reload after a truncated response, which is relayed as incomplete', async () => {
    const proxy = await startAndRead();
    demo.fail('cut', { times: 1 });
    await expect(putNumbered(proxy.url, PATH, 2)).rejects.toThrow();
    expect(numberIn(await proxy.ask(PATH))).toBe(2);
  });

  test('returns 502 when the response with the minted name is truncated', async () => {
    const proxy = await startAndRead();
    demo.fail('cut', { times: 1 });
    const answer = await putNumbered(proxy.url, '/api/handles/21.T11998/?mintNewSuffix=true', 2);
    expect(answer.status).toBe(502);
  });

  test('returns 502 when the upstream is unreachable, while cached records are still served', async () => {
    const own = await startDemoServer();
    own.put(HANDLE, numbered(1));
    const proxy = await startProxy({ UPSTREAM_URL: own.url });
    await proxy.ask(PATH);
    await own.close();
    expect((await putNumbered(proxy.url, PATH, 2)).status).toBe(502);
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
  });
});
