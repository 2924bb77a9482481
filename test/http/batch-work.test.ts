// The CPU work of a batch is sliced, linear, bounded, and stopped when the client disconnects.
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import request from 'supertest';
import { describe, expect, test, vi } from 'vitest';
import { elementsOf, handleOfTarget, postBatch } from '../support/batch.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { sliceBySteps } from '../support/slices.js';
import { mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

/** Mocks a server that returns a record of about `chars` characters of JSON for every handle. */
function mockLargeRecords(chars: number): void {
  const values = Array.from({ length: Math.ceil(chars / 100) }, (_, at) => ({
    ...(urlValue(`https://example.org/${at}`) as object),
    index: at + 1,
  }));
  mockUpstream((target) => recordOf(values, handleOfTarget(target)));
}

const LARGE = '21.T1/large';
const repeated = (count: number): string[] => Array<string>(count).fill(LARGE);

async function startWithLarge(chars = 1_000_000): Promise<Proxy> {
  mockLargeRecords(chars);
  const proxy = await startProxy();
  expect((await proxy.ask(`/api/handles/${LARGE}?index=1`)).status).toBe(200);
  return proxy;
}

describe('batch work', () => {
  test('reads a long type once, not for each handle', async () => {
    const proxy = await startWithLarge(100);
    const type = 'T.'.repeat(50_000);
    const folded = vi.spyOn(String.prototype, 'toUpperCase');
    const answer = await postBatch(proxy, { handles: repeated(100), type });
    const times = folded.mock.contexts.filter((text) => String(text).length === type.length).length;
    folded.mockRestore();
    expect(elementsOf(answer)).toHaveLength(100);
    expect(times).toBe(1);
  });

  test('is sliced also for small records in memory, when a traffic rule looks at each handle', async () => {
    mockLargeRecords(100);
    const rule = { name: 'none', match: { handle: '21.T1/none' }, log: true };
    const proxy = await startProxy({ TRAFFIC_RULES: JSON.stringify([rule]) });
    const steps = sliceBySteps();
    await postBatch(proxy, { handles: repeated(100) });
    const before = steps();
    expect(elementsOf(await postBatch(proxy, { handles: repeated(100) }))).toHaveLength(100);
    // The names alone take two steps each.
    expect(steps() - before).toBeGreaterThan(300);
  });

  describe('value selection from a large record', () => {
    test('parses the record once per batch', async () => {
      const proxy = await startWithLarge();
      const parse = vi.spyOn(JSON, 'parse');
      const answer = await postBatch(proxy, { handles: repeated(20), index: 1 });
      // The request body and small strings are also parsed, but nowhere near 20 × 10,000 values.
      expect(parse.mock.calls.length).toBeLessThan(100);
      expect(elementsOf(answer).map(({ body }) => body.values?.length)).toEqual(Array(20).fill(1));
    });

    test('yields to other requests between slices', async () => {
      const proxy = await startWithLarge();
      let isDone = false;
      let turns = 0;
      const count = (): void => {
        turns++;
        if (!isDone) setImmediate(count);
      };
      setImmediate(count);
      await postBatch(proxy, { handles: repeated(200), index: 1 });
      isDone = true;
      const quiet = turns;
      // An unsliced batch would take fewer than ten turns.
      expect(quiet).toBeGreaterThan(20);
    });

    test('truncates the batch at 64 MiB of records', async () => {
      const proxy = await startWithLarge();
      const elements = elementsOf(await postBatch(proxy, { handles: repeated(100), index: 1 }));
      const statuses = elements.map(({ status }) => status);
      const cut = statuses.indexOf(413);
      expect(cut).toBeGreaterThan(40);
      expect(cut).toBeLessThan(75);
      expect(new Set(statuses.slice(0, cut))).toEqual(new Set([200]));
      expect(new Set(statuses.slice(cut))).toEqual(new Set([413]));
    });
  });

  test.each([
    ['indented', '?pretty', {}],
    ['compressed', '', { 'Accept-Encoding': 'gzip' }],
  ])('truncates a batch of records that are %s at 64 MiB of records', async (_name, query, headers) => {
    const proxy = await startWithLarge();
    const body = JSON.stringify({ handles: repeated(75) });
    const answer = await proxy.ask(`/api/resolve${query}`, { method: 'POST', headers, body });
    const isGzip = answer.headers['content-encoding'] === 'gzip';
    const text = isGzip ? gunzipSync(answer.body).toString() : answer.text;
    const statuses = [...text.matchAll(/"status": ?(\d+)/g)].map(([, status]) => status);
    const cut = statuses.indexOf('413');
    expect(cut).toBeGreaterThan(40);
    expect(new Set(statuses.slice(0, cut))).toEqual(new Set(['200']));
    expect(new Set(statuses.slice(cut))).toEqual(new Set(['413']));
  });

  test('does not truncate a batch of complete records that are sent as they are', async () => {
    const proxy = await startWithLarge(300_000);
    const { text } = await postBatch(proxy, { handles: repeated(180) });
    expect(text.length).toBeGreaterThan(64 * 1024 * 1024);
    // Parsing 64 MiB of records would take seconds.
    expect(text.match(/"status":\d+/g)).toEqual(Array(180).fill('"status":200'));
  });

  test('stops when its client disconnects', async () => {
    const proxy = await startWithLarge();
    const body = JSON.stringify({ handles: repeated(60), index: 1 });
    const { port } = new URL(proxy.url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(
      `POST /api/resolve HTTP/1.1\r\nHost: proxy\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    // An unstopped batch would count all 60 elements.
    await expect.poll(() => proxy.connections()).toBe(0);
    const before = await countElements(proxy);
    await postBatch(proxy, { handles: [LARGE], index: 1 });
    expect(await countElements(proxy)).toBe(before + 1);
    expect(before).toBeLessThan(60);
  });

  async function countElements({ app }: Proxy): Promise<number> {
    const { text } = await request(app.admin).get('/metrics');
    const counts = [...text.matchAll(/^handle_proxy_batch_handles_total\{[^}]*\} (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  }

  test('includes at most 200 characters of an invalid handle in the response', async () => {
    mockLargeRecords(100);
    const answer = await postBatch(await startProxy(), { handles: ['x'.repeat(100_000)] });
    const [element] = elementsOf(answer);
    expect(element?.status).toBe(400);
    expect(element?.handle).toBe('x'.repeat(200));
    expect(answer.text.length).toBeLessThan(1000);
  });
});
