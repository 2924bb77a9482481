// Indented responses: bounded in length, and otherwise the same JSON as without indentation.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { TimeSlicer } from '../../src/time-slicer.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, VALUES, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

const listAt = (depth: number): unknown => (depth === 0 ? Array<number>(5000).fill(0) : [listAt(depth - 1)]);
const NESTED = recordOf([{ index: 1, type: 'X', data: { format: 'x', value: listAt(50) }, ttl: 86_400 }]);

describe('response with `pretty`', () => {
  test('is indented by two spaces', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const [compact, pretty] = [await proxy.ask(PATH), await proxy.ask(`${PATH}?pretty`)];
    expect(pretty.text).toBe(JSON.stringify(JSON.parse(compact.text), null, 2));
  });

  test.each([
    ['a record', '?pretty'],
    ['JSONP', '?pretty&callback=f'],
    ['selected values', '?pretty&index=1'],
    ['an authoritative response', '?pretty&auth=true'],
  ])('is not indented for %s if that would multiply its length', async (_what, query) => {
    mockUpstream(NESTED);
    const proxy = await startProxy();
    const compact = await proxy.ask(PATH + query.replace('pretty', 'n'));
    const pretty = await proxy.ask(PATH + query);
    expect([pretty.status, pretty.text]).toEqual([200, compact.text]);
    expect(pretty.headers.etag).toBe(compact.headers.etag);
  });

  test('is one job of the time slicer, because a second would wait behind the records of other requests', async () => {
    const data = { format: 'string', value: 'text '.repeat(5000) };
    mockUpstream(recordOf([{ index: 1, type: 'DESC', data, ttl: 86_400 }]));
    const proxy = await startProxy();
    const run = vi.spyOn(TimeSlicer.prototype, 'run');
    onTestFinished(() => {
      run.mockRestore();
    });
    await proxy.ask(`${PATH}?pretty&index=1`);
    expect(run.mock.calls.filter(([, { isHolding }]) => isHolding === true)).toHaveLength(1);
  });

  test('is not indented for an element of a batch if that would multiply its length', async () => {
    mockUpstream(NESTED);
    const proxy = await startProxy();
    const { text } = await askBatch(proxy);
    expect(text).toMatch(/^\[\n {2}\{"handle":/);
    expect(JSON.parse(text)).toEqual([{ handle: HANDLE, status: 200, body: NESTED.body }]);
    expect(text.length).toBeLessThan(2 * JSON.stringify(NESTED.body).length);
  });

  test('is not indented for a refusal if that would multiply its length', async () => {
    mockUpstream({ status: 400, body: { responseCode: 301, message: 'x', more: listAt(50) } });
    const proxy = await startProxy();
    const { status, text } = await proxy.ask(`${PATH}?pretty`);
    expect([status, text]).toEqual([400, (await proxy.ask(PATH)).text]);
    expect(text).toContain('[[[[');
  });
});

describe('record that no Handle server stores', () => {
  test('is rejected if it is nested deeper than 64 levels', async () => {
    mockUpstream(recordOf([{ ...(VALUES[0] as object), data: listAt(62) }]));
    const { status, text } = await (await startProxy()).ask(`${PATH}?pretty`);
    expect([status, text]).toEqual([502, expect.stringContaining('UPSTREAM_INVALID_RESPONSE')]);
  });

  test('is rejected if its objects have no names in common', async () => {
    const objects = Array.from({ length: 2000 }, (_, at) => ({ [`name${at}`]: 'text' }));
    mockUpstream(recordOf([{ ...(VALUES[0] as object), data: objects }]));
    const { status, text } = await (await startProxy()).ask(PATH);
    expect([status, text]).toEqual([502, expect.stringContaining('UPSTREAM_INVALID_RESPONSE')]);
  });
});

const askBatch = (proxy: Proxy) =>
  proxy.ask('/api/resolve?pretty', { method: 'POST', body: JSON.stringify({ handles: [HANDLE] }) });
