// The handle, query and body of a write are forwarded unchanged, as are the caller's headers.
import { describe, expect, test } from 'vitest';
import { gate } from '../support/gate.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';
import { PATH } from '../support/upstream.js';
import { asNockTells, jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const AUTHORIZATION = 'Basic MzAwJTNBMjEuVDExOTk4L1VTRVIwMTpwYXNzd29yZA==';

describe('forwarded write', () => {
  test.each<[what: string, body: Buffer]>([
    ['a bare array', Buffer.from('[{"index":1,"type":"URL","data":"https://example.org/"}]')],
    ['an object', Buffer.from('{"values":[]}')],
    ['lenient JSON with nonstandard numbers', Buffer.from("{values:[{index:01,ttl:+5,'type':URL}]}")],
    ['numbers that a parser would change', Buffer.from('[{"index":1.0,"ttl":12345678901234567890,"x":1e2}]')],
    ['white space, a byte order mark and doubled members', Buffer.from('\ufeff [ {"a":1,"a":2}\r\n\t] ')],
    ['invalid UTF-8', Buffer.from([0x5b, 0x22, 0xff, 0xfe, 0xc3, 0x28, 0x00, 0x22, 0x5d])],
    ['nothing', Buffer.alloc(0)],
  ])('preserves the body when it is %s', async (_what, body) => {
    const sent = mockWrites();
    const proxy = await startProxy();
    await proxy.ask(PATH, { method: 'PUT', body });
    expect(sent.map((write) => write.body)).toEqual([asNockTells(body)]);
  });

  test('preserves the caller’s headers', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    const headers = {
      Authorization: AUTHORIZATION,
      'Content-Type': 'application/json; charset=iso-8859-1',
      Accept: 'application/json',
      'X-Requested-With': 'XMLHttpRequest',
      'User-Agent': 'pyhandle/1.0',
      Cookie: 'a=b',
      Origin: 'https://app.example',
    };
    await proxy.ask(PATH, { method: 'PUT', headers, body: '[]' });
    const lowered = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    expect(sent[0]?.headers).toMatchObject({ ...lowered, host: 'upstream.test:8000', 'content-length': '2' });
  });

  test('preserves Handle logins, although a client certificate cannot pass TLS termination', async () => {
    const sent = mockWrites();
    const proxy = await startProxy();
    const logins = ['Handle sessionId="1x", cnonce="YQ=="', 'Handle clientCert="true"'];
    for (const Authorization of logins) await proxy.ask(PATH, { method: 'PUT', headers: { Authorization } });
    expect(sent.map(({ headers }) => headers['authorization'])).toEqual(logins);
  });

  test.each([
    ['index=1&index=2', 'index=1&index=2'],
    ['index=various', 'index=various'],
    ['overwrite=false&index=1', 'overwrite=false&index=1'],
    ['a=%2B+%zz&&=;x?y', 'a=%2B+%zz&&=;x?y'],
  ])('preserves the query %s', async (query, expected) => {
    const sent = mockWrites();
    const proxy = await startProxy({ DELETION_HANDLES: 'true', DELETION_VALUES: 'true' });
    for (const method of ['PUT', 'DELETE', 'POST']) await proxy.ask(`${PATH}?${query}`, { method });
    expect(sent.map(({ method, target }) => [method, target])).toEqual(
      ['PUT', 'DELETE', 'POST'].map((method) => [method, `${PATH}?${expected}`]),
    );
  });

  test.each([
    ['a plain name', '21.T11998/abc', '21.T11998/abc'],
    ['a trailing slash', '21.T11998/abc/', '21.T11998/abc/'],
    ['an encoded slash', '21.T11998%2Fabc', '21.T11998/abc'],
    ['a doubled slash', '21.T11998/a//b', '21.T11998%2Fa%2F%2Fb'],
    ['dot segments', '21.T11998/a/../b', '21.T11998%2Fa%2F..%2Fb'],
    ['a URL', '21.T11998/http://x', '21.T11998%2Fhttp%3A%2F%2Fx'],
    ['a plus, a semicolon and a question mark', '21.T11998/a+b;c%3Fd', '21.T11998/a%2Bb%3Bc%3Fd'],
    ['a backslash', '21.T11998/a%5Cb', '21.T11998/a%5Cb'],
    ['non-ASCII letters', '21.T11998/gr%C3%B6%C3%9Fe', '21.T11998/gr%C3%B6%C3%9Fe'],
    ['only a prefix', '0.NA%2F21.T11998', '0.NA/21.T11998'],
  ])('preserves a handle with %s', async (_what, path, expected) => {
    const sent = mockWrites();
    const proxy = await startProxy();
    await proxy.ask(`/api/handles/${path}`, { method: 'PUT', body: '[]' });
    expect(sent.map(({ target }) => target)).toEqual([`/api/handles/${expected}`]);
  });

  test.each([
    ['%zz', 400],
    ['21.T11998/a%00b', 400],
    [`21.T11998/${'x'.repeat(2048)}`, 400],
  ])('is not sent for an invalid handle: %s', async (path, status) => {
    const sent = mockWrites();
    const proxy = await startProxy({ DELETION_HANDLES: 'true' });
    for (const method of ['PUT', 'DELETE', 'POST']) {
      expect((await proxy.ask(`/api/handles/${path}`, { method })).status).toBe(status);
    }
    expect(sent).toEqual([]);
  });

  test('is not sent when its client has left while it waited for a slot', async () => {
    const held = gate();
    const sent = mockWrites({ ...jsonAnswer(200, { responseCode: 1 }), after: held.opened });
    const proxy = await startProxy({ UPSTREAM_CONCURRENCY: '1' });
    const put = (name: string) => proxy.ask(`/api/handles/21.T11998/${name}`, { method: 'PUT', body: '[]' });
    const first = put('first');
    await expect.poll(() => sent.length).toBe(1);
    const socket = await openSocket(proxy.url);
    socket.write('PUT /api/handles/21.T11998/left HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]');
    const [server] = proxy.app.host.upstreams.servers;
    await expect.poll(() => server?.usage().forwarded.waiting).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => proxy.connections()).toBe(1);
    held.open();
    expect([(await first).status, (await put('last')).status]).toEqual([200, 200]);
    expect(sent.map(({ target }) => target.split('/').at(-1))).toEqual(['first', 'last']);
  });
});
