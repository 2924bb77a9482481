// The change file and the change feed (server-sent events) of the app.
import { existsSync, mkdirSync, readFileSync, rmSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import request from 'supertest';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { MAX_SUBSCRIBERS } from '../../src/plugins/changes/changes.js';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { ask } from '../support/ask.js';
import { newChangeFile, readFeed } from '../support/changes.js';
import { basic, startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberedBody, putNumbered } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { freePort } from '../support/free-port.js';
import { startProxy } from '../support/proxy.js';
import { startOperated } from '../support/operated-proxy.js';
import { askV2, urlTo } from '../support/v2.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/changed';
const PATH = `/api/handles/${HANDLE}`;
const WRITER = '300:21.T11998/USER01';

async function startRecorded(env: Record<string, string> = {}, { before = '' } = {}) {
  demo.remove(HANDLE);
  const file = newChangeFile();
  if (before !== '') writeFileSync(file.path, before);
  const all = { DELETION_HANDLES: 'true', DELETION_VALUES: 'true' };
  const proxy = await startOperated(demo.url, { CHANGES_FILE: file.path, ...all, ...env });
  const write = (method: string, target: string, more: object = {}) =>
    proxy.ask(target, { method, headers: WRITE_HEADERS, ...more });
  return { proxy, file, write, adminUrl: proxy.place.ADMIN_URL };
}

const startFeed = () => startRecorded({ CHANGES_ENABLED: 'true' });

describe('change file', () => {
  it('contains a line for each write before the client receives the response', async () => {
    const { proxy, file, write } = await startRecorded();
    expect((await putNumbered(proxy.url, PATH, 1)).status).toBe(201);
    expect(file.lines()).toMatchObject([{ operation: 'create' }]);
    expect((await putNumbered(proxy.url, PATH, 2)).status).toBe(200);
    const value = JSON.stringify([textValue(2, 'EMAIL', 'a@example.org')]);
    expect((await write('PUT', `${PATH}?index=2`, { body: value })).status).toBe(201);
    expect((await write('PUT', `${PATH}?index=various`, { body: value })).status).toBe(200);
    expect((await write('DELETE', `${PATH}?index=2`)).status).toBe(200);
    expect((await write('DELETE', PATH)).status).toBe(200);
    expect(file.lines().map(({ operation, indexes }) => [operation, indexes])).toEqual([
      ['create', undefined],
      ['update', undefined],
      ['update', [2]],
      ['update', 'various'],
      ['delete', [2]],
      ['delete', undefined],
    ]);
    const [line] = file.lines();
    expect(Object.keys(line ?? {})).toEqual(
      'operation id time handle identity interface instance outcome requestId'.split(' '),
    );
    expect(line).toMatchObject({
      handle: HANDLE,
      identity: WRITER,
      interface: 'record',
      instance: `${hostname()}:${process.pid}`,
      outcome: 'changed',
    });
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['{"operation":"upd', '{"operation":"upd\n'],
    ['{}\n', '{}\n'],
  ])('begins with a separate line after %j of a process that was killed', async (before, kept) => {
    const { proxy, file } = await startRecorded({}, { before });
    await putNumbered(proxy.url, PATH, 1);
    await putNumbered(proxy.url, PATH, 2);
    const text = readFileSync(file.path, 'utf8');
    expect(text.slice(0, kept.length)).toBe(kept);
    const added = text.slice(kept.length).split('\n');
    expect(added.map((line) => line.slice(0, 20))).toEqual([
      '{"operation":"create',
      '{"operation":"update',
      '',
    ]);
  });

  /** Starts a proxy without a Handle server, and records what it logs. */
  async function startLogged(path: string) {
    const lines: Record<string, unknown>[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
    const logger = createLogger({ level: 'info', destination: { write } });
    const proxy = await startProxy({ CHANGES_FILE: path }, { logger });
    const purge = (handles: string[]) =>
      request(proxy.app.admin).post('/purge').send({ handles }).expect(200);
    return { ...proxy, purge, logged: () => lines.filter(({ msg }) => String(msg).startsWith('changes ')) };
  }

  it('that fails at short intervals is logged once a minute', async () => {
    const { path } = newChangeFile();
    const { logged, pass, purge } = await startLogged(path);
    for (const number of [1, 2]) {
      for (let times = 1; times <= 3; times++) {
        rmSync(path, { recursive: true, force: true });
        mkdirSync(path);
        await purge(['21.T1/a']);
        rmdirSync(path);
        await expect.poll(() => existsSync(path) && readFileSync(path, 'utf8')).toContain('"purge"');
      }
      await expect.poll(logged).toHaveLength(2 * number);
      pass(60_000);
    }
    expect(logged().map(({ msg }) => msg)).toEqual([
      'changes cannot be delivered, retrying',
      'changes are delivered again',
      'changes cannot be delivered, retrying',
      'changes are delivered again',
    ]);
  });

  it('lets the log tell how many lines are lost when the proxy stops while the disk is full', async () => {
    const { close, logged, purge } = await startLogged('/dev/full');
    await purge(['21.T1/a', '21.T1/b']);
    await close();
    expect(logged()).toMatchObject([
      {
        msg: 'changes cannot be delivered, retrying',
        remedy: expect.stringContaining('changes.file') as string,
      },
      { msg: 'changes lost', level: 'error', destination: 'file', lost: 2 },
    ]);
  });

  it('contains the request id from a trusted proxy', async () => {
    const { file, write } = await startRecorded({ HTTP_TRUSTED_PROXIES: 'loopback' });
    const headers = { ...WRITE_HEADERS, 'X-Request-Id': 'from-nginx' };
    await write('PUT', PATH, { headers, body: numberedBody(1) });
    expect(file.lines()).toMatchObject([{ requestId: 'from-nginx' }]);
  });

  it('contains no line for a write that the Handle server or the proxy rejects', async () => {
    const { file, write, proxy } = await startRecorded();
    await putNumbered(proxy.url, PATH, 1);
    const wrong = { ...WRITE_HEADERS, Authorization: basic(WRITER, 'wrong') };
    const body = numberedBody(2);
    expect((await write('PUT', PATH, { headers: wrong, body })).status).toBe(401);
    expect((await write('PUT', `${PATH}?overwrite=false`, { body })).status).toBe(409);
    const failing = { ...WRITE_HEADERS, 'If-Match': '"other"' };
    expect((await write('PUT', PATH, { headers: failing, body })).status).toBe(412);
    expect((await write('DELETE', `${PATH}-none`)).status).toBe(404);
    expect(file.lines()).toHaveLength(1);
  });

  it('marks a write whose outcome is unknown, and names its identity as claimed', async () => {
    const { file, write } = await startRecorded({ UPSTREAM_WRITE_TIMEOUT: '300ms' });
    demo.hold.holdReplies('PUT');
    expect((await write('PUT', PATH, { body: numberedBody(1) })).status).toBe(504);
    demo.hold.sendHeld('PUT');
    expect(file.lines()).toMatchObject([
      { operation: 'update', handle: HANDLE, claimedIdentity: WRITER, outcome: 'unknown' },
    ]);
  });

  it('names an invented login as claimed while the Handle server fails', async () => {
    const { file, proxy } = await startRecorded();
    const pretender = (identity: string) => ({
      ...WRITE_HEADERS,
      Authorization: basic(identity, 'invented'),
    });
    const long = `300:21.T11998/${'X'.repeat(2000)}`;
    demo.fail('error', { times: 2 });
    for (const identity of [WRITER, long]) {
      const { status } = await proxy.ask(PATH, {
        method: 'PUT',
        headers: pretender(identity),
        body: numberedBody(1),
      });
      expect(status).toBe(500);
    }
    expect(file.lines()).toMatchObject([
      { outcome: 'unknown', claimedIdentity: WRITER },
      { outcome: 'unknown', claimedIdentity: long.slice(0, 256) },
    ]);
    for (const line of file.lines()) expect(line).not.toHaveProperty('identity');
  });

  it('contains the name of a minted handle', async () => {
    const { file, write } = await startRecorded();
    const body = JSON.stringify([textValue(1, 'URL', 'https://example.org/'), adminValue()]);
    const { status, text } = await write('PUT', '/api/handles/21.T11998/?mintNewSuffix=true', { body });
    expect(status).toBe(201);
    const { handle } = JSON.parse(text) as { handle: string };
    expect(handle).not.toBe('21.T11998/');
    expect(file.lines()).toMatchObject([{ operation: 'create', handle }]);
  });

  it('contains ePIC v2 writes, with the identity that `v2.identities` maps the user name to', async () => {
    const { file, proxy } = await startRecorded({ V2_IDENTITIES: `alice=${WRITER}` });
    const epic = askV2(proxy.url);
    const as = `Basic ${Buffer.from('alice:password').toString('base64')}`;
    const created = await epic('/21.T11998/', { method: 'POST', as, body: [urlTo('1')] });
    const { 'epic-pid': minted } = JSON.parse(created.text) as { 'epic-pid': string };
    expect((await epic(`/${minted}`, { method: 'PUT', as, body: [urlTo('2')] })).status).toBe(204);
    expect((await epic(`/${minted}`, { method: 'DELETE', as })).status).toBe(204);
    const common = { handle: minted, interface: 'v2', identity: WRITER };
    expect(file.lines()).toMatchObject([
      { operation: 'create', ...common },
      { operation: 'update', ...common },
      { operation: 'delete', ...common },
    ]);
  });

  it('contains purges of handles and prefixes', async () => {
    const { file, proxy } = await startRecorded();
    const purge = (body: object) => request(proxy.app.admin).post('/purge').send(body).expect(200);
    await purge({ handles: ['21.T1/a', '21.T1/b'] });
    await purge({ prefix: '21.T1/', soft: true });
    await purge({ all: true });
    const made = { operation: 'purge', identity: 'operator', interface: 'admin' };
    expect(file.lines()).toMatchObject([
      { ...made, handle: '21.T1/a' },
      { ...made, handle: '21.T1/b' },
      { ...made, prefix: '21.T1/' },
      { ...made, prefix: '' },
    ]);
  });

  it('contains a purge that a cache in front has not confirmed, as it contains such a write', async () => {
    const env = { HTTP_SHARED_MAX_AGE: '1d', FRONTS_URLS: `http://127.0.0.1:${await freePort()}` };
    const { file, proxy } = await startRecorded(env);
    await request(proxy.app.admin).post('/purge').send({ prefix: '21.T1/' }).expect(503);
    expect(file.lines()).toMatchObject([{ operation: 'purge', prefix: '21.T1/' }]);
  });

  it('contains neither passwords nor values', async () => {
    const { file, proxy, write } = await startRecorded();
    await putNumbered(proxy.url, PATH, 987_654_321);
    await write('DELETE', PATH);
    const text = JSON.stringify(file.lines());
    expect(file.lines()).toHaveLength(2);
    for (const secret of ['password', '987654321', WRITE_HEADERS.Authorization.slice(6)])
      expect(text).not.toContain(secret);
  });
});

describe('change feed', () => {
  it('sends each write and purge, with an id, to every subscriber', async () => {
    const { adminUrl, proxy, file } = await startFeed();
    const readers = await Promise.all([readFeed(adminUrl), readFeed(adminUrl)]);
    for (const reader of readers) await expect.poll(reader.lastId).toMatch(/^\d+-1$/);
    await putNumbered(proxy.url, PATH, 1);
    await request(proxy.app.admin).post('/purge').send({ handle: HANDLE }).expect(200);
    for (const { events } of readers) {
      await expect.poll(() => events.length).toBe(2);
      expect(events.map(({ data }) => data)).toEqual(file.lines());
      expect(events.map(({ id, event }) => [id.replace(/^\d+-/, ''), event])).toEqual([
        ['2', 'change'],
        ['3', 'change'],
      ]);
    }
  });

  it('sends the event after readers can see the new record', async () => {
    const { adminUrl, proxy } = await startFeed();
    demo.put(HANDLE, [textValue(1, 'URL', 'https://example.org/0'), adminValue()]);
    await proxy.ask(PATH);
    const { events } = await readFeed(adminUrl, '0-0');
    await putNumbered(proxy.url, PATH, 1);
    await expect.poll(() => events.map(({ event }) => event)).toEqual(['gap', 'change']);
    expect((await proxy.ask(PATH)).text).toContain('https://example.org/1');
  });

  it('resumes after Last-Event-ID', async () => {
    const { adminUrl, proxy } = await startFeed();
    for (const count of [1, 2, 3]) await putNumbered(proxy.url, PATH, count);
    const first = await readFeed(adminUrl, '0-0');
    await expect.poll(() => first.events.length).toBe(4);
    const second = await readFeed(adminUrl, first.events[1]?.id);
    await expect.poll(() => second.events).toEqual(first.events.slice(2));
  });

  it('resumes after the id that a subscriber received before the first change', async () => {
    const { adminUrl, proxy } = await startFeed();
    const early = await readFeed(adminUrl);
    await expect.poll(early.lastId).toBeDefined();
    early.leave();
    await putNumbered(proxy.url, PATH, 1);
    const { events } = await readFeed(adminUrl, early.lastId());
    await expect.poll(() => events.map(({ event }) => event)).toEqual(['change']);
  });

  it('starts with a gap when changes after the given id are no longer retained', async () => {
    const { adminUrl, proxy } = await startRecorded({
      CHANGES_ENABLED: 'true',
      ...fixed({ changes: { maxEntries: 100 } }),
    });
    const purge = (handles: string[]) =>
      request(proxy.app.admin).post('/purge').send({ handles }).expect(200);
    const reader = await readFeed(adminUrl);
    await expect.poll(reader.lastId).toBeDefined();
    const start = reader.lastId();
    for (let round = 0; round < 3; round++) {
      await purge(Array.from({ length: 100 }, (_, at) => `21.T1/${round}-${at}`));
      await expect.poll(() => reader.events.length).toBe(100 * (round + 1));
    }
    const late = await readFeed(adminUrl, start);
    await expect.poll(() => late.events.at(-1)?.data['handle']).toBe('21.T1/2-99');
    const [gap, ...kept] = late.events;
    expect(gap).toMatchObject({ id: start, event: 'gap', data: { operation: 'gap', dropped: 200 } });
    expect(kept).toEqual(reader.events.slice(-kept.length));
  });

  it('retains fewer changes if their names are long, so that it has a maximum size in memory', async () => {
    const maxChars = 20_000;
    const { adminUrl, proxy } = await startRecorded({
      CHANGES_ENABLED: 'true',
      ...fixed({ changes: { maxChars } }),
    });
    demo.fail('error');
    onTestFinished(() => demo.heal());
    // Without a login: the outcome is unknown.
    const names = Array.from({ length: 40 }, (_, at) => `21.T11998/${at}${'%01'.repeat(500)}`);
    for (const name of names) await proxy.ask(`/api/handles/${name}`, { method: 'PUT', body: '[]' });
    const { events, lastId } = await readFeed(adminUrl, '0-0');
    await expect.poll(lastId).toMatch(/-41$/);
    expect(events[0]).toMatchObject({ event: 'gap' });
    expect(events.length).toBeGreaterThan(2);
    expect(JSON.stringify(events.map(({ data }) => data)).length).toBeLessThan(1.2 * maxChars);
  });

  it('starts with a gap for an id from an earlier process', async () => {
    const { adminUrl, proxy } = await startFeed();
    await putNumbered(proxy.url, PATH, 1);
    const { events } = await readFeed(adminUrl, '1000-7');
    await expect.poll(() => events.map(({ event }) => event)).toEqual(['gap', 'change']);
  });

  it('returns 404 if disabled, and 400 for an invalid id', async () => {
    const disabled = await startRecorded();
    expect((await ask(disabled.adminUrl, '/changes')).status).toBe(404);
    const { adminUrl } = await startFeed();
    const asked = await ask(adminUrl, '/changes', { headers: { 'Last-Event-ID': 'seven' } });
    expect([asked.status, asked.text]).toEqual([400, expect.stringContaining('Last-Event-ID') as string]);
    expect((await ask(adminUrl, '/changes', { method: 'HEAD' })).status).toBe(200);
  });

  it('ends the oldest subscription for one above the maximum, because its subscriber may have vanished', async () => {
    const { adminUrl, proxy } = await startFeed();
    const oldest = await readFeed(adminUrl);
    const others = [];
    while (others.length < MAX_SUBSCRIBERS) others.push(await readFeed(adminUrl));
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
    await oldest.ended;
    await putNumbered(proxy.url, PATH, 1);
    for (const { events } of others) await expect.poll(() => events.length).toBe(1);
    expect(oldest.events).toEqual([]);
  });
});
