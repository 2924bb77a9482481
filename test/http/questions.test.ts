import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, VALUES, mockUpstream } from '../support/upstream.js';

useNock();

const found = (...indexes: number[]): string =>
  JSON.stringify({
    responseCode: 1,
    handle: HANDLE,
    values: VALUES.filter(({ index }) => indexes.includes(index)),
  });
const nothing = JSON.stringify({ responseCode: 200, values: [], handle: HANDLE });

describe('record representations', () => {
  test.each([
    ['', found(1, 2, 3)],
    ['?index=1', found(1)],
    ['?index=1&index=2', found(1, 2)],
    ['?index=%2B1', found(1)],
    ['?index=%D9%A1&index=%EF%BC%92', found(1, 2)],
    ['?index=1&index=999', found(1)],
    ['?index=999', nothing],
    ['?type=URL', found(1)],
    ['?type=url', found(1)],
    ['?type=URL.', found(1, 3)],
    ['?type=URL.MIRROR', found(3)],
    ['?type=URL&type=EMAIL', found(1, 2)],
    ['?type=EMAIL&index=1', found(1, 2)],
    ['?type=NOSUCH', nothing],
    ['?type=', nothing],
    ['?cert=true&doNotRefer=true&noredirect', found(1, 2, 3)],
    ['?publicOnly=true', found(1, 2, 3)],
    ['?publicOnly', found(1, 2, 3)],
    ['?pretty=1', found(1, 2, 3)],
  ])('match the Handle server byte for byte for "%s"', async (query, body) => {
    mockUpstream();
    const proxy = await startProxy();
    const answer = await proxy.ask(PATH + query);
    expect(answer.status).toBe(200);
    expect(answer.text).toBe(body);
    expect(answer.headers['content-type']).toBe('application/json;charset=utf-8');
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(body)));
  });

  test.each(['?pretty', '?pretty=true', '?pretty=YES'])(
    'are indented by two spaces with %s',
    async (query) => {
      mockUpstream();
      const proxy = await startProxy();
      expect((await proxy.ask(PATH + query)).text).toBe(JSON.stringify(JSON.parse(found(1, 2, 3)), null, 2));
    },
  );

  test.each([
    ['cb', 'cb'],
    ['alert(1)//%3Cx%3E', 'alert_1____x_'],
    ['1a1', '_a1'],
    ['', ''],
  ])('are JSONP for callback=%s', async (given, name) => {
    mockUpstream();
    const proxy = await startProxy();
    const answer = await proxy.ask(`${PATH}?callback=${given}`);
    expect(answer.text).toBe(`${name}(${found(1, 2, 3)});`);
    expect(answer.headers['content-type']).toBe('application/javascript;charset=utf-8');
  });

  test('have the same headers for HEAD as for GET, but no body', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const [get, head] = [await proxy.ask(PATH), await proxy.ask(PATH, { method: 'HEAD' })];
    expect(head.text).toBe('');
    for (const name of ['content-length', 'content-type', 'etag', 'vary'])
      expect(head.headers[name]).toBe(get.headers[name]);
  });

  test('preserve bytes that a JSON serializer would change', async () => {
    const value =
      '{"index":1,"type":"DESC","data":{"format":"string","value":"\\u2028 \\/ é \u{1F600}"},"ttl":1.5e3}';
    const body = `{"responseCode":1,"handle":"${HANDLE}","values":[${value}]}`;
    mockUpstream({ status: 200, body });
    const proxy = await startProxy();
    expect((await proxy.ask(PATH)).text).toBe(body);
    expect((await proxy.ask(`${PATH}?index=1`)).text).toBe(body);
  });
});
