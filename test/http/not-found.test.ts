import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

describe('unknown handle', () => {
  test('is reported as 404 with code 100 and enters the negative cache', async () => {
    const upstream = mockUpstream(notFound());
    const proxy = await startProxy();
    for (const query of ['', '?type=URL', '?index=1']) {
      const answer = await proxy.ask(PATH + query);
      expect([answer.status, answer.text]).toEqual([404, `{"responseCode":100,"handle":"${HANDLE}"}`]);
    }
    expect(upstream.asked).toBe(1);
    upstream.answers(recordOf());
    proxy.pass(29_999);
    expect((await proxy.ask(PATH)).status).toBe(404);
    proxy.pass(1);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('is requested on every read when cache.notFound.ttl is 0', async () => {
    const upstream = mockUpstream(notFound());
    const proxy = await startProxy({ CACHE_NOT_FOUND_TTL: '0s' });
    await proxy.ask(PATH);
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(2);
  });

  test('is reported with the message of the Handle server', async () => {
    mockUpstream({
      status: 404,
      body: { responseCode: 100, message: 'Unable to find service', handle: HANDLE },
    });
    const proxy = await startProxy();
    await proxy.ask(PATH);
    expect((await proxy.ask(PATH)).text).toBe(
      `{"responseCode":100,"message":"Unable to find service","handle":"${HANDLE}"}`,
    );
  });
});

describe('handle without public values', () => {
  test('is reported as 200 with code 200 and enters the negative cache', async () => {
    const upstream = mockUpstream({ status: 200, body: { responseCode: 200, values: [], handle: HANDLE } });
    const proxy = await startProxy();
    await proxy.ask(PATH);
    const answer = await proxy.ask(`${PATH}?type=URL`);
    expect([answer.status, answer.text]).toEqual([
      200,
      `{"responseCode":200,"values":[],"handle":"${HANDLE}"}`,
    ]);
    expect(upstream.asked).toBe(1);
    proxy.pass(30_000);
    await proxy.ask(PATH);
    expect(upstream.asked).toBe(2);
  });
});
