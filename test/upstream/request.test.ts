import { describe, expect, test } from 'vitest';
import { handleRef } from '../../src/handle/handle.js';
import { newPseudonym, proxiesIn } from '../../src/upstream/caller.js';
import { useNock } from '../support/nock.js';
import { createClient, mockUpstream, resolve, UPSTREAM } from './ask.js';

useNock();

const HANDLE = handleRef('21.T1/a', false);

describe('upstream request', () => {
  test('contains the headers of the proxy, and no credentials', async () => {
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100 });
    await resolve('21.T1/a');
    expect(upstream.sent).toHaveLength(1);
    const { headers } = upstream.sent[0]!;
    expect(headers).toMatchObject({
      accept: 'application/json',
      'user-agent': 'handle-resolver-proxy',
      via: '1.1 handle-resolver-proxy',
    });
    expect(headers).not.toHaveProperty('authorization');
    expect(headers).not.toHaveProperty('cookie');
  });

  test('preserves only pseudonyms of handle-resolver-proxy in Via', async () => {
    const [first, second] = [newPseudonym(), newPseudonym()];
    const via = proxiesIn(`1.1 gateway.example (x), 1.1 ${first}, 2 ${second}, 1.1 squid`);
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100 });
    const caller = { class: 'normal', client: undefined, ...(via !== undefined && { via }) } as const;
    await createClient().resolve({ handle: HANDLE, authoritative: false, caller });
    expect(upstream.sent[0]?.headers['via']).toBe(`1.1 ${first}, 1.1 ${second}, 1.1 handle-resolver-proxy`);
    expect(proxiesIn('1.1 gateway.example')).toBeUndefined();
  });

  test('retains the proxies already passed in Via, despite forged names', () => {
    const invented = Array.from({ length: 50 }, (_, at) => `1.1 handle-resolver-proxy-made-up-${at}`);
    const passed = [newPseudonym(), newPseudonym()];
    const via = proxiesIn([...invented, ...passed.map((name) => `1.1 ${name}`)].join(', '));
    for (const name of passed) expect(via).toContain(name);
    expect(via?.split(', ')).toHaveLength(10);
  });

  test('has no query when it reads the whole record', async () => {
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100 });
    await createClient().resolve({ handle: HANDLE, authoritative: false });
    expect(upstream.sent.map(({ path }) => path)).toEqual(['/api/handles/21.T1/a']);
  });

  test('contains auth=true for an authoritative read', async () => {
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100 });
    await createClient().resolve({ handle: HANDLE, authoritative: true });
    expect(upstream.sent.map(({ path }) => path)).toEqual(['/api/handles/21.T1/a?auth=true']);
  });

  test('supports a server address with a path and a trailing slash', async () => {
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100 });
    await resolve('21.T1/a', { url: `${UPSTREAM}/hs/` });
    expect(upstream.sent.map(({ path }) => path)).toEqual(['/hs/api/handles/21.T1/a']);
  });

  test.each([
    ['21.T1/äö漢', '21.T1/%C3%A4%C3%B6%E6%BC%A2'],
    ['21.T1/a b ', '21.T1/a%20b%20'],
    ['21.T1/a?b=c', '21.T1/a%3Fb%3Dc'],
    ['21.T1/a#b', '21.T1/a%23b'],
    ['21.T1/100%', '21.T1/100%25'],
    ['21.T1/%2F', '21.T1/%252F'],
    ['21.T1/a;v=1', '21.T1/a%3Bv%3D1'],
    ['21.T1/a+b', '21.T1/a%2Bb'],
    ['21.T1/a\\b<c>|"', '21.T1/a%5Cb%3Cc%3E%7C%22'],
    ["21.T1/it's(!*)~", "21.T1/it's(!*)~"],
    ['21.T1/a//b', '21.T1%2Fa%2F%2Fb'],
    ['21.T1/a/', '21.T1/a/'],
    ['/21.T1/a', '%2F21.T1%2Fa'],
    ['21.T1/a/../b', '21.T1%2Fa%2F..%2Fb'],
    ['21.T1/.', '21.T1%2F.'],
    ['../x', '..%2Fx'],
    ['21.T1/%2e%2e/x', '21.T1/%252e%252e/x'],
    ['21.T1', '21.T1'],
  ])('encodes %s as the path %s', async (handle, path) => {
    const upstream = mockUpstream();
    upstream.reply(404, { responseCode: 100, handle });
    expect(await resolve(handle)).toEqual({ kind: 'not-found' });
    expect(upstream.sent.map((sent) => sent.path)).toEqual([`/api/handles/${path}`]);
  });

  test.each(['.', '..'])('is not sent for %s, whose outcome is not-found', async (handle) => {
    const upstream = mockUpstream();
    expect(await resolve(handle)).toEqual({ kind: 'not-found' });
    expect(upstream.sent).toHaveLength(0);
  });
});
