// Locations can come from the prefix (HS_NAMESPACE of 0.NA/<prefix>) and from included handles.
import { describe, expect, test, vi } from 'vitest';
import { type Answer, type MockUpstream, mockUpstream, notFound, recordOf } from '../support/upstream.js';
import { value } from '../support/leads.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { thorough } from '../support/thorough.js';
import { mockWrites } from '../support/writes.js';

useNock();

const PREFIX_RECORD = '0.NA/21.T11998';
const namespace = (xml: string): unknown[] => [value(3, 'HS_NAMESPACE', `<namespace>${xml}</namespace>`)];
const url = [value(1, 'URL', 'https://url.example.org/')];
const list = (xml: string, attributes = ''): unknown[] => [
  value(1, '10320/loc', `<locations ${attributes}>${xml}</locations>`),
];
const CONNEG = list(
  '<location http_role="conneg" href_template="https://data.example.org/{hdl}" weight="0" rel="item"/>',
);
const JSON_ACCEPT = { headers: { Accept: 'application/json' } };
const DATA = [302, 'https://data.example.org/21.T11998%2Furl'];
const PLAIN = [302, 'https://url.example.org/'];

interface Prefixed extends Proxy {
  upstream: MockUpstream;
  records: Map<string, unknown[]>;
  to: (handle: string, question?: object) => Promise<[number, string | undefined]>;
  /** Writes a record through the proxy. */
  write: (handle: string, values: unknown[]) => Promise<void>;
  askedFor: (handle: string) => number;
}

async function startPrefixed(given: Record<string, unknown[]>, env = {}): Promise<Prefixed> {
  const records = new Map(Object.entries(given));
  const upstream = mockUpstream((target) => {
    const handle = decodeURIComponent(target.slice('/api/handles/'.length).split('?')[0]!);
    const values = records.get(handle);
    return values === undefined ? notFound(handle) : recordOf(values, handle);
  });
  const proxy = await startProxy(env);
  return {
    ...proxy,
    upstream,
    records,
    async to(handle, question) {
      const { status, headers } = await proxy.ask(`/${handle}`, question);
      return [status, headers.location];
    },
    async write(handle, values) {
      records.set(handle, values);
      mockWrites({ status: 200, body: '{"responseCode":1}' });
      const { status } = await proxy.ask(`/api/handles/${handle}`, { method: 'PUT', body: '{"values":[]}' });
      expect(status).toBe(200);
    },
    askedFor: (handle) =>
      upstream.targets.filter(
        (target) => decodeURIComponent(target).split('?')[0] === `/api/handles/${handle}`,
      ).length,
  };
}

const DOI_LIKE = {
  '21.T11998/url': url,
  '21.T11998/conneg': CONNEG,
  [PREFIX_RECORD]: namespace('<locs>21.T11998/conneg</locs>'),
};

describe('prefix and included locations', () => {
  test('affect every redirect', async () => {
    const proxy = await startPrefixed(DOI_LIKE);
    for (let times = 0; times < 3; times++) {
      expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(DATA);
      expect(await proxy.to('21.T11998/url')).toEqual(PLAIN);
    }
    const { headers } = await proxy.ask('/21.T11998/url');
    expect(headers.link).toBe('<https://data.example.org/21.T11998%2Furl>; rel="item"');
    expect(headers.vary).toMatch(/^Accept, /);
    for (const handle of [PREFIX_RECORD, '0.NA/0.NA', '21.T11998/conneg'])
      expect(proxy.askedFor(handle)).toBe(1);
  });

  test('are updated in every redirect immediately after a prefix record write', async () => {
    const proxy = await startPrefixed({
      ...DOI_LIKE,
      [PREFIX_RECORD]: namespace(''),
      '21.T11998/other': url,
    });
    const handles = ['21.T11998/url', '21.T11998/other'];
    // The later iterations use prepared responses.
    for (let times = 0; times < 4; times++) {
      for (const handle of handles) expect(await proxy.to(handle, JSON_ACCEPT)).toEqual(PLAIN);
    }
    expect(proxy.askedFor(PREFIX_RECORD)).toBe(1);
    await proxy.write(PREFIX_RECORD, DOI_LIKE[PREFIX_RECORD]);
    for (const handle of handles) {
      expect((await proxy.to(handle, JSON_ACCEPT))[1]).toMatch(/^https:\/\/data\.example\.org\//);
    }
    await proxy.write('21.T11998/conneg', list(''));
    for (const handle of handles) expect(await proxy.to(handle, JSON_ACCEPT)).toEqual(PLAIN);
    await proxy.write('21.T11998/conneg', CONNEG);
    expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(DATA);
    await proxy.write(PREFIX_RECORD, namespace(''));
    for (const handle of handles) expect(await proxy.to(handle, JSON_ACCEPT)).toEqual(PLAIN);
  });

  test('take effect immediately after the creation of a prefix record', async () => {
    const proxy = await startPrefixed({ '21.T11998/url': url, '21.T11998/conneg': CONNEG });
    for (let times = 0; times < 4; times++)
      expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(PLAIN);
    expect(proxy.askedFor(PREFIX_RECORD)).toBe(1);
    await proxy.write(PREFIX_RECORD, DOI_LIKE[PREFIX_RECORD]);
    expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(DATA);
  });

  test('cost one prefix record request per TTL for any number of redirects', async () => {
    const given = Object.fromEntries(
      Array.from({ length: thorough(20, 5) }, (_, number) => [`21.T11998/${number}`, url]),
    );
    const proxy = await startPrefixed(given);
    for (let round = 1; round <= 3; round++) {
      for (let times = 0; times < 3; times++) {
        for (const handle of Object.keys(given)) expect(await proxy.to(handle)).toEqual(PLAIN);
      }
      expect(proxy.askedFor(PREFIX_RECORD)).toBe(round);
      proxy.pass(31_000);
    }
  });

  const REFUSED = { status: 400, body: { responseCode: 301 } };
  const FAILED = { status: 500, body: 'broken' };

  /** Makes the upstream return `answer` for all prefix records. */
  const answerPrefix = ({ upstream, records }: Prefixed, answer: Answer): void => {
    upstream.answers((target) => {
      const handle = decodeURIComponent(target.slice('/api/handles/'.length));
      const values = records.get(handle);
      return handle.startsWith('0.NA/') ? answer : values ? recordOf(values, handle) : notFound(handle);
    });
  };

  test.each([
    ['is refused', REFUSED],
    ['is unreadable', FAILED],
  ])(
    'are ignored when the prefix record %s, which is read again after upstream.retryAfter',
    async (_what, answer) => {
      const proxy = await startPrefixed({ '21.T11998/url': url });
      answerPrefix(proxy, answer);
      const askOften = async (): Promise<void> => {
        for (let times = 0; times < 5; times++) expect(await proxy.to('21.T11998/url')).toEqual(PLAIN);
      };
      await askOften();
      const perRead = proxy.askedFor(PREFIX_RECORD);
      proxy.pass(4999);
      await askOften();
      expect(proxy.askedFor(PREFIX_RECORD)).toBe(perRead);
      proxy.pass(1);
      await askOften();
      await vi.waitFor(() => {
        expect(proxy.askedFor(PREFIX_RECORD)).toBe(2 * perRead);
      });
    },
  );

  test('do not delay redirects while a failed prefix record is retried', async () => {
    const proxy = await startPrefixed({ '21.T11998/url': url });
    answerPrefix(proxy, FAILED);
    expect(await proxy.to('21.T11998/url')).toEqual(PLAIN);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    answerPrefix(proxy, { ...FAILED, after: held });
    proxy.pass(5000);
    for (let times = 0; times < 3; times++) expect(await proxy.to('21.T11998/url')).toEqual(PLAIN);
    release();
  });

  test('prevent a redirect from being stored while its prefix record is unreadable', async () => {
    const proxy = await startPrefixed({ '21.T11998/url': url });
    answerPrefix(proxy, FAILED);
    for (let times = 0; times < 4; times++) {
      const { headers } = await proxy.ask('/21.T11998/url');
      expect([headers.location, headers['cache-control']]).toEqual(['https://url.example.org/', 'no-store']);
    }
    answerPrefix(proxy, REFUSED);
    proxy.pass(5000);
    await vi.waitFor(async () => {
      expect((await proxy.ask('/21.T11998/url')).headers['cache-control']).toMatch(/^public, max-age=/);
    });
  });

  test.each([
    ['was refused', REFUSED],
    ['was unreadable', FAILED],
  ])('are updated immediately after a write to a prefix record that %s', async (_what, answer) => {
    const proxy = await startPrefixed({ '21.T11998/url': url, '21.T11998/conneg': CONNEG });
    answerPrefix(proxy, answer);
    for (let times = 0; times < 4; times++)
      expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(PLAIN);
    const values = namespace('<locs>21.T11998/conneg</locs>');
    proxy.upstream.answers((target) => {
      const handle = decodeURIComponent(target.slice('/api/handles/'.length));
      return recordOf(proxy.records.get(handle), handle);
    });
    await proxy.write(PREFIX_RECORD, values);
    expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(DATA);
  });

  test('expire with the prefix record', async () => {
    const proxy = await startPrefixed({ ...DOI_LIKE, [PREFIX_RECORD]: namespace('') });
    for (let times = 0; times < 4; times++)
      expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(PLAIN);
    proxy.records.set(PREFIX_RECORD, DOI_LIKE[PREFIX_RECORD]);
    proxy.pass(3_601_000);
    // This API read refreshes the handle record.
    expect((await proxy.ask('/api/handles/21.T11998/url')).status).toBe(200);
    expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(DATA);
  });

  test('make a redirect stale when the prefix record is stale', async () => {
    const proxy = await startPrefixed({ ...DOI_LIKE, [PREFIX_RECORD]: namespace('') });
    const status = async () => (await proxy.ask('/21.T11998/url')).headers['cache-status'];
    for (let times = 0; times < 3; times++) await status();
    expect(await status()).toMatch(/; hit; ttl=\d+$/);
    proxy.pass(3_601_000);
    expect((await proxy.ask('/api/handles/21.T11998/url')).status).toBe(200);
    answerPrefix(proxy, FAILED);
    expect(await status()).toMatch(/; hit; ttl=-\d+; detail=error$/);
    for (let times = 0; times < 3; times++)
      expect(await status()).toMatch(/; hit; ttl=-\d+; detail=backoff$/);
    expect((await proxy.ask('/21.T11998/url')).headers['cache-control']).toBe('public, max-age=0');
  });

  test.each([
    ['the overriding prefix', 'overridePrefix="0.NA/21.OTHER"'],
    ['an included prefix', 'includeNamespace="0.NA/21.OTHER"'],
  ])('are updated immediately after a write to the record of %s', async (_which, attribute) => {
    const proxy = await startPrefixed({
      '21.T11998/url': list('<location href="https://url.example.org/" weight="1"/>', attribute),
      '21.T11998/conneg': CONNEG,
      '0.NA/21.OTHER': namespace(''),
    });
    for (let times = 0; times < 4; times++)
      expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(PLAIN);
    await proxy.write('0.NA/21.OTHER', namespace('<locs>21.T11998/conneg</locs>'));
    expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(DATA);
  });

  test('are replaced by a 404, while the record interface serves the handle, when the prefix is inactive', async () => {
    const proxy = await startPrefixed({
      '21.T11998/url': url,
      [PREFIX_RECORD]: namespace('<status>inactive</status>'),
    });
    for (const query of ['', '?noredirect', '?action=showurls']) {
      expect(await proxy.to(`21.T11998/url${query}`)).toEqual([404, undefined]);
    }
    const { text } = await proxy.ask('/21.T11998/url', JSON_ACCEPT);
    expect(JSON.parse(text)).toMatchObject({ code: 'REDIRECT_INACTIVE', detail: '21.T11998' });
    expect((await proxy.ask('/api/handles/21.T11998/url')).status).toBe(200);
    await proxy.write(PREFIX_RECORD, namespace('<status>active</status>'));
    expect(await proxy.to('21.T11998/url')).toEqual(PLAIN);
  });

  test('include the global namespace unless the prefix excludes it', async () => {
    const proxy = await startPrefixed({
      ...DOI_LIKE,
      '0.NA/0.NA': namespace('<locs>21.T11998/conneg</locs>'),
      [PREFIX_RECORD]: namespace(''),
    });
    expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(DATA);
    await proxy.write(PREFIX_RECORD, namespace('<locs no_nslocs="yes">21.T11998/nothing</locs>'));
    expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(PLAIN);
  });

  test.each(['</namespace><broken', '<locs/>', '<locs>21.T11998/nothing</locs>', '<locs>99.NOPE/x</locs>'])(
    'are empty for the namespace %s',
    async (xml) => {
      const proxy = await startPrefixed({ '21.T11998/url': url, [PREFIX_RECORD]: namespace(xml) });
      expect(await proxy.to('21.T11998/url', JSON_ACCEPT)).toEqual(PLAIN);
    },
  );

  test('follow includes 21 levels deep with one read each, and are updated immediately after a write', async () => {
    const chain = Object.fromEntries(
      Array.from({ length: 25 }, (_, level) => [
        `21.T11998/${level}`,
        list(
          `<location href="https://l${level}.example.org/" weight="0"/>`,
          `include="21.T11998/${level + 1}"`,
        ),
      ]),
    );
    const itself = list('<location href="https://x/" weight="0"/>', 'include="21.T11998/itself"');
    const twice = list(
      '<include>21.T11998/twice</include><location href="https://x/"/>',
      'include="21.T11998/twice"',
    );
    const proxy = await startPrefixed({ ...chain, '21.T11998/itself': itself, '21.T11998/twice': twice });
    const shown = async (handle: string) =>
      (await proxy.ask(`/${handle}?action=showurls`)).text.match(/<location /g)?.length;
    expect(await shown('21.T11998/0')).toBe(22);
    expect(await shown('21.T11998/itself')).toBe(22);
    expect(await shown('21.T11998/twice')).toBeLessThanOrEqual(201);
    expect(await shown('21.T11998/0')).toBe(22);
    expect(proxy.askedFor('21.T11998/7')).toBe(1);
    await proxy.write('21.T11998/7', list(''));
    expect(await shown('21.T11998/0')).toBe(7);
  });

  test('limit the max-age of a redirect to the TTL of an included record', async () => {
    const short = [
      value(
        1,
        '10320/loc',
        '<locations><location href="https://s.example.org/" weight="0"/></locations>',
        20,
      ),
    ];
    const proxy = await startPrefixed({
      '21.T11998/a': list('<location href="https://a.example.org/"/>', 'include="21.T11998/short"'),
      '21.T11998/short': short,
    });
    for (let times = 0; times < 3; times++) {
      expect((await proxy.ask('/21.T11998/a')).headers['cache-control']).toBe('public, max-age=20');
    }
  });
});
