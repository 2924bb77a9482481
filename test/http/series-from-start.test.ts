// Counters are exported at startup, because Prometheus misses the first increment of a new series.
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { PATH, mockUpstream, notFound, recordOf } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const series = async (proxy: Proxy): Promise<string[]> =>
  (await request(proxy.app.admin).get('/metrics')).text
    .split('\n')
    .filter((line) => /^handle_proxy_(?!breaker)\w+\{/.test(line))
    .map((line) => line.replace(/ \S+$/, ''));

describe('metric series', () => {
  test('exist at startup for hits, misses, writes, stale responses and upstream failures', async () => {
    const upstream = mockUpstream();
    mockWrites(jsonAnswer(200, { responseCode: 1 }));
    const proxy = await startProxy();
    const before = await series(proxy);
    const paths = [PATH, PATH, '/21.T11998/abc', '/21.T11998/abc', `${PATH}?auth=true`];
    for (const path of paths) await proxy.ask(path);
    await proxy.ask(PATH, { method: 'PUT', body: '{"values":[]}' });
    upstream.answers(notFound());
    for (const path of ['/api/handles/21.T11998/none', '/21.T11998/none']) await proxy.ask(path);
    upstream.answers(recordOf());
    await proxy.ask(PATH);
    for (const failure of [
      { status: 500, body: 'broken' },
      { status: 200, body: '<html>' },
      { status: 0, body: '', error: 'ECONNREFUSED' },
    ]) {
      upstream.answers(failure);
      proxy.pass(86_000_000);
      for (const path of [PATH, '/api/handles/21.T11998/other', '/21.T11998/third']) await proxy.ask(path);
    }
    await proxy.ask('/api/foo');
    const after = await series(proxy);
    expect(after.filter((name) => !before.includes(name))).toEqual([]);
  });
});
