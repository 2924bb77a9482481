// Lists in every spelling of the query, compared with the responses of the Handle server itself.
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { type Asked, ask } from '../support/ask.js';
import { administered, basic, startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { type Proxy, openProxy, startProxy } from '../support/proxy.js';

const PREFIX = '21.T11998';
const USER = `300:${PREFIX}/USER01`;
const NAMES = ['B', 'a', '"quoted"', 'back\\slash', 'ümlaut', '\u2028', '\u0001', '<&>', 'a/b//c', 'e\u0301'];

const server = await startDemoServer({
  prefixes: [PREFIX, '21.T9'],
  seed: {
    ...administered(PREFIX),
    ...Object.fromEntries(
      NAMES.map((name) => [`${PREFIX}/${name}`, [textValue(1, 'URL', 'https://example.org/')]]),
    ),
  },
});
const authorization = basic(USER, 'password');

const MIRRORED = {
  ...{ UPSTREAM_URL: server.url, MIRROR_PREFIXES: PREFIX, MIRROR_USER: USER, MIRROR_PASSWORD: 'password' },
  MIRROR_PUBLIC_LISTS: 'true',
};

async function waitForList(proxy: Proxy): Promise<Proxy> {
  const listAge = async (): Promise<number | undefined> =>
    (await proxy.metrics())
      .find(({ name }) => name === 'handle_proxy_mirror_age_seconds')
      ?.values.find(({ labels }) => labels['part'] === 'list')?.value;
  // Not `expect.poll`, which only works within a test.
  const isListed = async (): Promise<boolean> => (await listAge()) === 0;
  await vi.waitUntil(isListed, { timeout: 60_000, interval: 10 });
  return proxy;
}

const startMirror = async (env: Record<string, string> = {}): Promise<Proxy> =>
  waitForList(await startProxy({ ...MIRRORED, ...env }));

const LIST = `/api/handles?prefix=${PREFIX}`;
const isHit = ({ headers }: Asked): boolean =>
  headers['cache-status'] === 'handle-resolver-proxy; hit; detail=mirror';

/** The parts of a response that a mirror must copy. */
const shown = ({ status, headers, text }: Asked) => [
  status,
  headers['content-type'],
  headers['content-length'],
  text,
];

const SPELLINGS = [
  `prefix=${PREFIX}`,
  'prefix=21.t11998',
  'prefix=%32%31.T11998',
  '%70refix=21.T11998',
  `&&prefix=${PREFIX}&`,
  `prefix=${PREFIX}&prefix=21.T9`,
  `prefix=${PREFIX}&page=0&pageSize=3`,
  `pageSize=3&page=2&prefix=${PREFIX}`,
  `prefix=${PREFIX}&page=00&pageSize=003`,
  `prefix=${PREFIX}&page=1&page=0&pageSize=2`,
  `prefix=${PREFIX}&page=999999999&pageSize=1`,
  `prefix=${PREFIX}&page=0&pageSize=999999999`,
  `prefix=${PREFIX}&page=1&pageSize=0`,
  `prefix=${PREFIX}&page=3`,
  `prefix=${PREFIX}&pageSize=3`,
  `prefix=${PREFIX}&pretty`,
  `prefix=${PREFIX}&pretty=TRUE`,
  `prefix=${PREFIX}&pretty=no&pretty=true`,
  `prefix=${PREFIX}&pretty=yes&page=0&pageSize=0`,
];

const OTHERS = [
  '',
  'prefix',
  'prefix=',
  'prefix=21.T9',
  'prefix=21.T9&prefix=21.T11998',
  'prefix=99.NOPE',
  `prefix=${PREFIX}/`,
  `prefix=0.NA/${PREFIX}`,
  `prefix=0.na%2F${PREFIX}`,
  `prefix=${PREFIX}%20`,
  `prefix=+${PREFIX}`,
  `prefix=${PREFIX}%00`,
  `prefix=${PREFIX};page=0`,
  `PREFIX=${PREFIX}`,
  `prefix=${PREFIX}&page=-1&pageSize=2`,
  `prefix=${PREFIX}&page=&pageSize=2`,
  `prefix=${PREFIX}&page=x&pageSize=2`,
  `prefix=${PREFIX}&page=0&pageSize=2147483648`,
  `prefix=${PREFIX}&page=%D9%A1&pageSize=2`,
  `prefix=${PREFIX}&page=0&pageSize=+2`,
  `prefix=${PREFIX}&page=0&page=x&pageSize=2`,
];

describe('a list', () => {
  const proxy = {} as Proxy;
  beforeAll(async () => {
    Object.assign(proxy, await waitForList(await openProxy(MIRRORED)));
  });
  afterAll(() => proxy.close());

  it.each(SPELLINGS)('is the same from the mirror as from the server (%s)', async (query) => {
    const target = `/api/handles?${query}`;
    const mirrored = await proxy.ask(target);
    expect(isHit(mirrored)).toBe(true);
    const { headers, ...direct } = await ask(server.url, target, { headers: { authorization } });
    expect(shown(mirrored)).toEqual(shown({ headers, ...direct }));
  });

  it.each(OTHERS)('is what an anonymous caller gets from the server (%s)', async (query) => {
    const target = `/api/handles?${query}`;
    const answer = await proxy.ask(target);
    expect(isHit(answer)).toBe(false);
    expect(answer.text).not.toContain(`${PREFIX}/B`);
    const direct = await ask(server.url, target);
    if (query !== '') expect(shown(answer)).toEqual(shown(direct));
  });

  it.each(['f', '', 'a.b', '1x', 'alert(1)//', '%E2%80%A8'])(
    'is the same script from the mirror as from the server (callback=%s)',
    async (callback) => {
      const target = `${LIST}&pretty=true&callback=${callback}`;
      const mirrored = await proxy.ask(target);
      expect(isHit(mirrored)).toBe(true);
      const direct = await ask(server.url, target, { headers: { authorization } });
      expect(mirrored.text.replace(/^[^(]*/, '')).toBe(direct.text.replace(/^[^(]*/, ''));
      expect(mirrored.headers['content-type']).toBe('application/javascript;charset=utf-8');
    },
  );

  it.each(['/api/handles/?', '/API/Handles?', 'http://other.example/api/handles?'])(
    'comes from the mirror at each path of the list (%s)',
    async (path) => {
      expect(isHit(await proxy.ask(`${path}prefix=${PREFIX}`))).toBe(true);
    },
  );
});

describe('a list from the mirror', () => {
  it('is revalidated by its ETag, compressed on request, and whole despite a Range', async () => {
    const proxy = await startMirror(fixed({ http: { gzipMinBytes: 0 } }));
    const plain = await proxy.ask(LIST, { headers: { Range: 'bytes=0-9', 'If-Range': '"x"' } });
    expect([plain.status, plain.headers['accept-ranges']]).toEqual([200, undefined]);
    const again = await proxy.ask(LIST, { headers: { 'If-None-Match': String(plain.headers['etag']) } });
    expect([again.status, again.text]).toEqual([304, '']);
    const zipped = await proxy.ask(LIST, { headers: { 'Accept-Encoding': 'gzip' } });
    expect(zipped.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(zipped.body).toString()).toBe(plain.text);
    const head = await proxy.ask(LIST, { method: 'HEAD' });
    expect([isHit(head), head.headers['content-length'], head.text]).toEqual([
      true,
      plain.headers['content-length'],
      '',
    ]);
  });

  it('is readable by scripts, but not stored by caches', async () => {
    const proxy = await startMirror();
    const { headers } = await proxy.ask(LIST, { headers: { Origin: 'https://page.example' } });
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'https://page.example',
      'cache-control': 'no-store',
    });
  });

  it('is subject to traffic rules', async () => {
    const rules = [{ name: 'lists', match: { interface: ['list'] }, limit: { perMinute: 2 } }];
    const proxy = await startMirror({ TRAFFIC_RULES: JSON.stringify(rules) });
    const statuses = [];
    for (let count = 0; count < 3; count++) statuses.push((await proxy.ask(LIST)).status);
    expect(statuses).toEqual([200, 200, 429]);
  });
});
