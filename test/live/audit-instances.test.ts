// The staleness audit of two instances that share a real Redis.
import request from 'supertest';
import { expect, it, vi } from 'vitest';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { startDemoServer } from '../support/demo.js';
import { numbered, putNumbered } from '../support/demo-writes.js';
import type { Proxy } from '../support/proxy.js';
import { describeTwoProxies } from '../support/sharing-proxies.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/page';
const PATH = `/api/handles/${HANDLE}`;

const write = async (proxy: Proxy, count: number): Promise<void> => {
  expect((await putNumbered(proxy.url, PATH, count)).status).toBe(200);
};

const countOf = async (proxy: Proxy, sample: string, result: string): Promise<number> => {
  const { text } = await request(proxy.app.admin).get('/metrics');
  const series = `handle_proxy_audit_total{sample="${sample}",result="${result}"} `;
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(series))
      ?.slice(series.length),
  );
};

/** Returns the age of the entry in the memory of an instance (s). */
const ageInMemory = async (proxy: Proxy): Promise<number | undefined> =>
  (await proxy.app.operations.inspect(HANDLE)).find(({ tier }) => tier === 'memory')?.ageSeconds;

const env = { AUDIT_HITS: '1', AUDIT_WRITES: '1' };

describeTwoProxies({ upstreamUrl: demo.url, env }, (two) => {
  it('audits a write on each instance', async () => {
    demo.put(HANDLE, numbered(1));
    for (const proxy of [two.one, two.other]) await proxy.ask(PATH);
    await write(two.one, 2);
    for (const proxy of [two.one, two.other]) {
      await expect.poll(() => countOf(proxy, 'write', 'equal')).toBe(1);
      expect(await countOf(proxy, 'write', 'older-after-acknowledged-write')).toBe(0);
    }
  });

  it('reports a write that bypassed both instances as older-within-ttl', async () => {
    demo.put(HANDLE, numbered(1));
    await write(two.one, 2);
    for (const proxy of [two.one, two.other]) proxy.pass(1000);
    await two.other.ask(PATH);
    demo.put(HANDLE, numbered(3));
    expect((await two.other.ask(PATH)).text).toContain('example.org/2');
    await expect.poll(() => countOf(two.other, 'hit', 'older-within-ttl')).toBe(1);
    await expect.poll(async () => (await two.other.ask(PATH)).text).toContain('example.org/3');
    expect(await countOf(two.other, 'hit', 'older-after-acknowledged-write')).toBe(0);
  });

  it('reports an instance that does not apply the messages of the other instance', async () => {
    demo.put(HANDLE, numbered(1));
    for (const proxy of [two.one, two.other]) await proxy.ask(PATH);
    vi.spyOn(MemoryStore.prototype, 'applyChange').mockImplementation(() => undefined);
    const writeAndWait = async (number: number): Promise<void> => {
      for (const proxy of [two.one, two.other]) proxy.pass(1000);
      await write(two.one, number);
      for (const proxy of [two.one, two.other]) proxy.pass(10);
    };
    await writeAndWait(2);
    await expect.poll(() => countOf(two.other, 'write', 'older-after-acknowledged-write')).toBe(1);
    // The audit has replaced the entry, whose age was a second.
    await expect.poll(() => ageInMemory(two.other)).toBe(0);
    await writeAndWait(3);
    expect((await two.other.ask(PATH)).text).toContain('example.org/2');
    await expect.poll(() => countOf(two.other, 'hit', 'older-after-acknowledged-write')).toBe(1);
  });
});
