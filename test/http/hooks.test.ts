// Each hook, used by a plugin of a few lines in the real app.
import nock from 'nock';
import request from 'supertest';
import { describe, expect, it, vi } from 'vitest';
import type { Plugin, Started } from '../../src/plugin.js';
import type { Host } from '../../src/host.js';
import type { AnsweredRead, RequestJudge } from '../../src/hooks.js';
import { ERRORS, traffic } from '../../src/plugins/traffic/plugin.js';
import { ServiceError } from '../../src/errors.js';
import { handleRef } from '../../src/handle/handle.js';
import type { LoggedChange, Outcome } from '../../src/handle/outcome.js';
import { admin } from '../../src/plugins/admin/plugin.js';
import { audit } from '../../src/plugins/audit/plugin.js';
import { signposting } from '../../src/plugins/signposting/plugin.js';
import { HANDLE_SERVER } from '../../src/upstream/handle-server.js';
import type { RecordSource } from '../../src/upstream/contract.js';
import { createOriginServer } from '../../src/upstream/upstreams.js';
import { basic } from '../support/demo.js';
import { urlRecord } from '../../src/upstream/url-record.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, UPSTREAM_URL, mockUpstream, notFound, recordOf } from '../support/upstream.js';

useNock();

const KEY = handleRef(HANDLE, false).key;

const ROOT_SERVER = {
  ...{ source: HANDLE_SERVER, url: 'http://root.test', prefixes: [], secondaries: [], readOnly: true },
  ...{ caFile: undefined, fingerprint: undefined, existenceCheck: false, key: 'upstream' },
  kind: 'handle-server' as const,
};

const pluginWith = (started: Started): Plugin => ({
  name: 'example',
  isEnabled: () => true,
  load: () => Promise.resolve({ start: () => started }),
});

const startWith = (started: Started, env: Record<string, string> = {}): Promise<Proxy> =>
  startProxy(env, { plugins: [pluginWith(started)] });

async function askTimes(times: number, { ask }: Proxy): Promise<void> {
  for (let time = 0; time < times; time++) await ask(PATH);
}

const purgeHandle = ({ app: { operations } }: Proxy): Promise<unknown> =>
  operations.purge({ handles: [HANDLE], isSoft: false });

/** A judge that rejects what it judges. */
const refuses: RequestJudge = {
  judge: () => ({ refusal: new ServiceError(ERRORS.TRAFFIC_REFUSED) }),
  judgeMessage: () => ({ refusal: new ServiceError(ERRORS.TRAFFIC_REFUSED) }),
};
const admits: RequestJudge = { ...refuses, judge: () => ({}) };

describe('hooks of admission', () => {
  it.each([
    [false, 1],
    [true, 2],
  ])('admission: a miss is judged, and a hit if judgesHits is %s', async (judgesHits, judged) => {
    mockUpstream();
    const judge = vi.fn(admits.judge);
    await askTimes(2, await startWith({ admission: () => ({ ...admits, judgesHits, judge }) }));
    expect(judge).toHaveBeenCalledTimes(judged);
  });

  it('admission: the first refusal counts, and a judge that only admits changes nothing', async () => {
    mockUpstream();
    const judges = [undefined, admits, refuses].map((judge) => pluginWith({ admission: () => judge }));
    const proxy = await startProxy({}, { plugins: judges });
    expect((await proxy.ask(PATH)).status).toBe(403);
  });

  it('admission: a judge may have no member but judge', async () => {
    mockUpstream();
    const { judge } = refuses;
    const { ask, app } = await startWith({ admission: () => ({ judge }) });
    expect((await ask(PATH)).status).toBe(403);
    const [admitMessage] = app.host.hooks.admitMessage;
    expect(admitMessage?.('192.0.2.1', app.host.refOf(HANDLE))).toMatchObject({ class: 'normal' });
  });

  it('aroundMiss: runs or rejects each read that misses in memory, the first outermost', async () => {
    const upstream = mockUpstream();
    const seen: string[] = [];
    const around = (name: string): Started => ({
      async aroundMiss({ read, isUnknown }) {
        seen.push(`${name} begins`);
        const answer = await read();
        seen.push(`${name}: ${isUnknown(answer) ? 'unknown' : 'known'}`);
        return answer;
      },
    });
    const plugins = [pluginWith(around('one')), pluginWith(around('two'))];
    const proxy = await startProxy({}, { plugins });
    await askTimes(2, proxy);
    expect(seen).toEqual(['one begins', 'two begins', 'two: known', 'one: known']);
    expect(upstream.asked).toBe(1);
  });
});

describe('hooks of servers', () => {
  const FOREIGN = '99.FAR/page';
  const env = { UPSTREAMS: JSON.stringify([{ prefixes: '21.T11998', url: UPSTREAM_URL }]) };

  it('read: reads a handle instead of its server, once for all callers', async () => {
    mockUpstream();
    const read = vi.fn((): Promise<Outcome> => Promise.resolve({ kind: 'not-found' }));
    const proxy = await startWith(
      { read: ({ handle }, next) => (handle.text === FOREIGN ? read() : next()) },
      env,
    );
    const ask = async (handle: string) => (await proxy.ask(`/api/handles/${handle}`)).status;
    expect(await Promise.all([FOREIGN, FOREIGN, '99.NONE/page', HANDLE].map(ask))).toEqual([
      404, 404, 400, 200,
    ]);
    expect(read).toHaveBeenCalledOnce();
  });

  it('read: a prefix without a server is read with a login too, and not written', async () => {
    const none = JSON.stringify([
      { prefixes: '99.FILE', kind: 'none' },
      { prefixes: '*', url: UPSTREAM_URL },
    ]);
    const proxy = await startWith(
      { read: () => Promise.resolve(urlRecord('https://example.org/file', { index: 1, ttl: 60 })) },
      { UPSTREAMS: none },
    );
    const headers = {
      Authorization: basic('300:99.FILE/USER', 'secret'),
      'Content-Type': 'application/json',
    };
    for (const [path, refused] of [
      ['/api/handles/99.FILE/1', 400],
      ['/api/v2/handles/99.FILE/1', 403],
    ] as const) {
      expect((await proxy.ask(path, { headers })).text).toContain('https://example.org/file');
      const put = await proxy.ask(path, {
        method: 'PUT',
        headers,
        body: '[{"type":"URL","parsed_data":"x:"}]',
      });
      expect([path, put.status]).toEqual([path, refused]);
    }
  });

  it('root: a server is asked for prefix records that no other server has', async () => {
    mockUpstream(notFound('0.NA/99.FAR'));
    nock(ROOT_SERVER.url)
      .get('/api/handles/0.NA/99.FAR')
      .reply(200, recordOf([], '0.NA/99.FAR').body as object);
    const start = (host: Host): Started => ({
      root: createOriginServer({ ...host.settings.current.upstream, ...ROOT_SERVER }, host, host, undefined),
    });
    const plugin: Plugin = { name: 'root', isEnabled: () => true, load: () => Promise.resolve({ start }) };
    const proxy = await startProxy({}, { plugins: [plugin] });
    expect((await proxy.ask('/api/handles/0.NA/99.FAR')).status).toBe(200);
  });
});

describe('hooks of reads', () => {
  it('hit: a read is answered with a fresh entry, a miss is not', async () => {
    mockUpstream();
    const hits: string[] = [];
    const proxy = await startWith({ hit: ({ text }) => hits.push(text) });
    await askTimes(1, proxy);
    expect(hits).toEqual([]);
    await proxy.ask(`${PATH}?type=URL`);
    expect(hits).toEqual([HANDLE]);
  });

  it('sentPrepared and repeat: a prepared response is sent, and sent again', async () => {
    mockUpstream();
    const sent: number[] = [];
    const repeated: string[] = [];
    const proxy = await startWith({
      sentPrepared: ({ status }) => sent.push(status),
      repeat: (key) => repeated.push(key),
    });
    await askTimes(4, proxy);
    expect(sent).toEqual([200, 200]);
    expect(repeated).toEqual([KEY, KEY]);
  });

  it('answered: a read has an answer, whether the handle exists or not', async () => {
    const upstream = mockUpstream();
    const reads: unknown[] = [];
    const proxy = await startWith({
      answered: ({ handle, ...read }: AnsweredRead) => reads.push([handle.text, read]),
    });
    await askTimes(1, proxy);
    upstream.answers(notFound('21.T11998/none'));
    await proxy.ask('/api/handles/21.T11998/none');
    await expect
      .poll(() => reads)
      .toEqual([
        [HANDLE, { interface: 'record', exists: true }],
        ['21.T11998/none', { interface: 'record', exists: false }],
      ]);
  });

  it('failed: a read has an error instead of an answer, on each interface', async () => {
    mockUpstream({ status: 500, body: { responseCode: 2 } });
    const failed: string[] = [];
    const proxy = await startWith({ failed: ({ text }) => failed.push(text) });
    await proxy.ask(PATH);
    await proxy.ask(PATH, { method: 'DELETE' });
    await proxy.ask('/21.T11998/redirect', { method: 'POST' });
    await expect.poll(() => failed).toEqual([HANDLE, '21.T11998/redirect']);
  });

  it('compared: the audit has compared a hit with the record at the Handle server', async () => {
    const upstream = mockUpstream();
    const compared: unknown[] = [];
    const plugins = [
      audit,
      pluginWith({ compared: ({ key }, isCurrent) => compared.push([key, isCurrent]) }),
    ];
    const proxy = await startProxy({ AUDIT_HITS: '1' }, { plugins });
    await askTimes(2, proxy);
    await expect.poll(() => compared).toEqual([[KEY, true]]);
    upstream.answers(recordOf([]));
    await askTimes(1, proxy);
    await expect
      .poll(() => compared)
      .toEqual([
        [KEY, true],
        [KEY, false],
      ]);
  });

  it('robotRead: a traffic rule attributes a read to a robot', async () => {
    mockUpstream();
    const read: string[] = [];
    const rules = JSON.stringify([{ name: 'robots', match: { userAgent: '*Bot*' }, robot: true }]);
    const plugins = [traffic, pluginWith({ robotRead: ({ text }) => read.push(text) })];
    const proxy = await startProxy({ TRAFFIC_RULES: rules }, { plugins });
    await askTimes(1, proxy);
    expect(read).toEqual([]);
    await proxy.ask(PATH, { headers: { 'User-Agent': 'ExampleBot/1' } });
    expect(read).toEqual([HANDLE]);
  });

  it('notFoundTtlMs: a "not found" has at least this TTL', async () => {
    const upstream = mockUpstream(notFound());
    const proxy = await startWith({ notFoundTtlMs: () => 60_000 }, { CACHE_NOT_FOUND_TTL: '1s' });
    await askTimes(1, proxy);
    proxy.pass(59_000);
    await askTimes(1, proxy);
    expect(upstream.asked).toBe(1);
  });

  it('notFoundTtlMs: a "not found" with a TTL of 0 is not kept', async () => {
    const upstream = mockUpstream(notFound());
    const proxy = await startWith({ notFoundTtlMs: () => 60_000 }, { CACHE_NOT_FOUND_TTL: '0s' });
    await askTimes(2, proxy);
    expect(upstream.asked).toBe(2);
  });

  it('stalePeriod: a stale record of the prefix is served for longer while the server fails', async () => {
    const upstream = mockUpstream();
    const stalePeriod = { prefixes: ['21.T11998'], ms: 7_200_000 };
    const shorter = { CACHE_STALE_IF_ERROR: '{default: 1m, 21.T11998: 1m}', CACHE_FOUND_MAX_TTL: '1m' };
    const proxy = await startWith({ stalePeriod }, shorter);
    await askTimes(1, proxy);
    upstream.answers({ status: 500, body: { responseCode: 2 } });
    proxy.pass(3_600_000);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  it('list: the list of a prefix is known without its server', async () => {
    const known = { handles: [HANDLE], page: {}, listedAt: 0, detail: 'example' };
    const proxy = await startWith({ list: (prefix) => (prefix === '21.T11998' ? known : undefined) });
    const { status, body, headers } = await proxy.ask('/api/handles?prefix=21.T11998');
    expect([status, body.toString()]).toEqual([200, expect.stringContaining(HANDLE)]);
    expect(headers['cache-status']).toContain('detail=example');
  });

  it('spans: a request is wrapped, and its call of the server is added', async () => {
    mockUpstream();
    const seen: string[] = [];
    const spans: Started['spans'] = {
      wrap: (listener) => (req, res) => {
        seen.push(`request ${req.method ?? ''}`);
        return listener(req, res);
      },
      run: (name, work) => work({ traceId: name, describe: () => undefined, end: () => undefined }),
      current: () => undefined,
      addCall: ({ name, result }) => seen.push(`${name} ${result}`),
    };
    await askTimes(1, await startWith({ spans }));
    expect(seen).toEqual(['request GET', 'GET upstream found']);
  });
});

describe('hooks of changes', () => {
  it('invalidated, deleted and changed: a purge of a handle', async () => {
    mockUpstream();
    const seen: unknown[] = [];
    const proxy = await startWith({
      invalidated: (key) => seen.push(['invalidated', key]),
      deleted(deleted) {
        seen.push(['deleted', deleted]);
        return Promise.resolve();
      },
      changed: (changes: readonly LoggedChange[]) => {
        seen.push(...changes.map(({ operation, handle }) => [operation, handle]));
        return Promise.resolve();
      },
    });
    await askTimes(1, proxy);
    seen.length = 0;
    await purgeHandle(proxy);
    expect(seen).toEqual([
      ['deleted', { key: KEY }],
      ['invalidated', KEY],
      ['purge', HANDLE],
    ]);
  });

  it('banned: a purge of a prefix', async () => {
    const prefixes: string[] = [];
    const proxy = await startWith({ banned: (prefix) => prefixes.push(prefix) });
    await proxy.app.operations.purge({ prefix: '21.T11998/', isSoft: false });
    expect(prefixes).toEqual(['21.T11998/']);
  });

  it('written: a write through the proxy', async () => {
    const keys: string[] = [];
    nock(UPSTREAM_URL).put(PATH).reply(201, { responseCode: 1, handle: HANDLE });
    const proxy = await startWith({ written: (key) => keys.push(key) });
    const headers = { 'Content-Type': 'application/json', Authorization: 'Basic MzAwOjIxLlQxL0E6cHc=' };
    expect((await proxy.ask(PATH, { method: 'PUT', body: '{"values":[]}', headers })).status).toBe(201);
    expect(keys).toEqual([KEY]);
  });
});

describe('kinds of servers', () => {
  const UPSTREAMS = JSON.stringify([{ prefixes: '20.1', kind: 'template', url: 'https://a.test/{suffix}' }]);

  it('sources: a plugin reads the handles of a server', async () => {
    const source: RecordSource = {
      ...HANDLE_SERVER,
      kind: 'template',
      protocol: (settings) => ({ ...HANDLE_SERVER.protocol(settings), read: () => ({ kind: 'not-found' }) }),
    };
    const plugin = { ...pluginWith({}), load: () => Promise.resolve({ sources: [source] }) };
    const { ask } = await startProxy({ UPSTREAMS }, { plugins: [plugin] });
    expect((await ask('/api/handles/20.1/A')).status).toBe(404);
  });

  it('sources: a kind that no plugin reads is refused at start', async () => {
    await expect(startProxy({ UPSTREAMS }, { plugins: [] })).rejects.toThrow(
      'upstreams.0.kind: no plugin reads servers of the kind template',
    );
  });
});

/** Adds a link to redirects alone. */
const linking = pluginWith({
  redirect: () => ({
    *readLinks(_values, { handle }) {
      yield;
      return { onRedirect: () => [['Link', `<${handle}>; rel="canonical"`]] };
    },
  }),
});

describe('hooks of redirects', () => {
  const url = {
    index: 1,
    type: 'URL',
    data: { format: 'string', value: 'https://example.org/' },
    ttl: 86400,
  };

  it('redirect: without plugins, a URL value redirects, and other records are JSON', async () => {
    mockUpstream((target) =>
      target.includes('url')
        ? recordOf([url], '21.T11998/url')
        : recordOf([{ ...url, type: 'DESC' }], '21.T11998/text'),
    );
    const plain = await startProxy({}, { plugins: [] });
    const { status, headers } = await plain.ask('/21.T11998/url');
    expect([status, headers.location, headers.link]).toEqual([302, 'https://example.org/', undefined]);
    expect((await plain.ask('/21.T11998/text')).headers['content-type']).toContain('application/json');
    expect((await plain.ask('/')).status).toBe(400);
  });

  it('redirect: readLinks adds headers to redirects by URL values and by plugins, also from memory', async () => {
    mockUpstream(recordOf([url]));
    const { ask } = await startProxy({}, { plugins: [linking] });
    for (const query of ['', '', '', '?urlappend=x'])
      expect((await ask(`/${HANDLE}${query}`)).headers.link).toBe(`<${HANDLE}>; rel="canonical"`);
  });

  it('redirect: a plugin whose links are no link set leaves the link sets to the others', async () => {
    mockUpstream(recordOf([url]));
    const env = { SIGNPOSTING_PUBLIC_URL: 'https://pid.example.org' };
    const target = `/${HANDLE}?action=linkset`;
    const alone = await startProxy({}, { plugins: [linking] });
    expect((await alone.ask(target)).headers['content-type']).toContain('application/json');
    const both = await startProxy(env, { plugins: [linking, signposting] });
    expect((await both.ask(target)).text).toContain('cite-as');
  });
});

describe('hooks of the proxy', () => {
  it('statistics: members of GET /stats, which a plugin that is off declares', async () => {
    const started = pluginWith({ statistics: () => ({ example: { count: 1 } }) });
    const off = { ...pluginWith({}), isEnabled: () => false, statistics: { other: { count: 0 } } };
    const { app } = await startProxy({}, { plugins: [started, off, admin] });
    const { body } = (await request(app.admin).get('/stats')) as { body: object };
    expect(body).toMatchObject({ example: { count: 1 }, other: { count: 0 } });
  });

  it('connection: each plugin in turn takes a connection before its requests are read, or closes it', async () => {
    mockUpstream();
    const taken: string[] = [];
    const taking = (name: string): Plugin =>
      pluginWith({
        connection(socket, serve) {
          taken.push(name);
          if (name === 'third' && taken.length > 3) socket.destroy();
          else setImmediate(serve);
        },
      });
    const proxy = await startProxy({}, { plugins: ['first', 'second', 'third'].map(taking) });
    expect((await proxy.ask(PATH)).status).toBe(200);
    await expect(proxy.ask(PATH)).rejects.toThrow('socket hang up');
    expect(taken).toEqual(['first', 'second', 'third', 'first', 'second', 'third']);
  });

  it('close: the proxy stops', async () => {
    let closed = 0;
    const proxy = await startWith({
      close() {
        closed++;
      },
    });
    expect(closed).toBe(0);
    await proxy.close();
    expect(closed).toBe(1);
  });
});
