// Lists of a mirrored prefix, which are served from the mirror while no write can have changed them.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { adminValue, textValue, userRecord } from '../../src/dev-server/seed.js';
import { createControlledServer } from '../support/demo-control.js';
import { basic } from '../support/demo.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type Recording, handleServerRecordings, recordedAnswer, replay } from '../support/recordings.js';

const bodyOf = (name: string): string =>
  handleServerRecordings.find((recording) => recording.name === name)?.response.body ?? '';

/** All handles of the recorded server, which the mirror requests as one page. */
const RECORDED = JSON.parse(bodyOf('list: prefix lower case')) as { handles: string[] };

/** Recorded lists of the prefix, without their logins: a server may list for anyone. */
const LISTS = handleServerRecordings
  .filter(({ name, request, response }) => {
    const isMirrored = /prefix=21\.t11998/i.test(request.path);
    return name.startsWith('list: ') && isMirrored && response.status === 200 && !name.includes('=-1');
  })
  .map((recording) => ({ ...recording, request: { ...recording.request, headers: [] } }));

/** Starts a Handle server that lists for anyone. Returns its URL, and the queries of the lists it was asked for. */
async function startListingServer({ handles } = RECORDED) {
  const lists: string[] = [];
  let refusal: { status: number; responseCode: number } | undefined;
  const server = createServer((req, res) => {
    const { pathname, search } = new URL(req.url ?? '', 'http://server');
    const isList = pathname === '/api/handles';
    if (isList) lists.push(search);
    if (isList && refusal !== undefined) {
      res.writeHead(refusal.status, { 'Content-Type': 'application/json' }).end(JSON.stringify(refusal));
      return;
    }
    const totalCount = String(handles.length);
    const list = { responseCode: 1, prefix: '21.T11998', totalCount, page: 0, pageSize: 10_000, handles };
    res.writeHead(isList ? 200 : 404, { 'Content-Type': 'application/json;charset=UTF-8' });
    res.end(JSON.stringify(isList ? list : { responseCode: 100, handle: pathname }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const refuse = (status: number, responseCode: number): void => {
    refusal = { status, responseCode };
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, lists, refuse };
}

const readingOf = async (proxy: Proxy, part: string): Promise<number | undefined> => {
  const ages = (await proxy.metrics()).find(({ name }) => name === 'handle_proxy_mirror_age_seconds');
  return ages?.values.find(({ labels }) => labels['part'] === part)?.value;
};

describe('a recorded list', () => {
  it.each(LISTS.map((recording): [string, Recording] => [recording.name, recording]))(
    'is served from the mirror byte for byte (%s)',
    async (_name, recording) => {
      const server = await startListingServer();
      const proxy = await startProxy({ UPSTREAM_URL: server.url, MIRROR_PREFIXES: '21.T11998' });
      await expect.poll(() => readingOf(proxy, 'list')).toBe(0);
      proxy.pass(7000);
      const answer = await replay(recording, { baseUrl: proxy.url });
      const { status, body, headers } = recordedAnswer(recording);
      expect([answer.status, answer.body]).toEqual([status, body]);
      const isSame = (line: string): boolean => /^content-(type|length):/.test(line);
      expect(answer.headers.filter(isSame)).toEqual(headers.filter(isSame));
      expect(answer.headers).toEqual(
        expect.arrayContaining(['age: 7', 'cache-status: handle-resolver-proxy; hit; detail=mirror']),
      );
      expect(server.lists).toEqual(['?prefix=21.T11998&page=0&pageSize=10000']);
    },
  );

  it.each(['/', '&page=-1&pageSize=-1', '&page=abc&pageSize=2', '&auth=true', '&page=', '&index=1'])(
    'comes from the server if the mirror does not interpret the query (%s)',
    async (rest) => {
      const server = await startListingServer();
      const proxy = await startProxy({ UPSTREAM_URL: server.url, MIRROR_PREFIXES: '21.T11998' });
      await expect.poll(() => readingOf(proxy, 'list')).toBe(0);
      const { headers } = await proxy.ask(`/api/handles?prefix=21.T11998${rest}`);
      expect(headers['cache-status']).toBe('handle-resolver-proxy; fwd=bypass');
      expect(server.lists).toContain(`?prefix=21.T11998${rest}`);
    },
  );

  it.each([
    ['the mirror', 'is busy', 503, 3, 'hit; detail=mirror'],
    ['the mirror', 'fails', 500, 2, 'hit; detail=mirror'],
    ['the server', 'refuses them', 401, 402, 'fwd=bypass'],
  ])('comes from %s if the server then %s (%i)', async (_source, _why, status, responseCode, cacheStatus) => {
    const server = await startListingServer({ handles: [] });
    const env = { MIRROR_PREFIXES: '21.T11998', MIRROR_INTERVAL: '1s' };
    const proxy = await startProxy({ UPSTREAM_URL: server.url, ...env });
    await expect.poll(() => readingOf(proxy, 'list')).toBe(0);
    server.refuse(status, responseCode);
    const before = server.lists.length;
    await expect.poll(() => server.lists.length).toBeGreaterThan(before + 1);
    const { headers } = await proxy.ask('/api/handles?prefix=21.T11998');
    expect(headers['cache-status']).toBe(`handle-resolver-proxy; ${cacheStatus}`);
  });

  it('escapes line separators like a Handle server', async () => {
    const server = await startListingServer({ handles: ['21.T11998/\u2028'] });
    const proxy = await startProxy({ UPSTREAM_URL: server.url, MIRROR_PREFIXES: '21.T11998' });
    await expect.poll(() => readingOf(proxy, 'list')).toBe(0);
    const { text } = await proxy.ask('/api/handles?prefix=21.T11998');
    expect(text).toContain('"handles":["21.T11998/\\u2028"]');
  });
});

const PREFIX = '21.T11998';
const USER = `300:${PREFIX}/USER01`;
const LIST = `/api/handles?prefix=${PREFIX}`;

/** Starts a mirror with a login, and waits for its list. */
async function startMirror(env: Record<string, string> = {}) {
  const reference = { handle: `${PREFIX}/USER01`, index: 300 };
  const admins = { index: 200, type: 'HS_VLIST', data: { format: 'vlist', value: [reference] } };
  const server = createControlledServer({
    seed: {
      [`0.NA/${PREFIX}`]: [adminValue('111111111111'), admins],
      [`${PREFIX}/USER01`]: userRecord('password'),
      [`${PREFIX}/A`]: [textValue(1, 'URL', 'https://example.org/a'), adminValue()],
    },
  });
  onTestFinished(() => server.close());
  const { url } = await server.listen(0);
  const login = { MIRROR_USER: USER, MIRROR_PASSWORD: 'password', MIRROR_PUBLIC_LISTS: 'true' };
  const rest = { UPSTREAM_RETRY_AFTER: '0s', DELETION_HANDLES: 'true' };
  const proxy = await startProxy({
    ...{ UPSTREAM_URL: url, MIRROR_PREFIXES: PREFIX, ...login, ...rest },
    ...env,
  });
  await expect.poll(() => readingOf(proxy, 'records')).toBe(0);
  return { server, proxy };
}

const authorization = basic(USER, 'password');
const HIT = 'handle-resolver-proxy; hit; detail=mirror';
const RELAYED = 'handle-resolver-proxy; fwd=bypass';

const statusOf = async (proxy: Proxy, headers = {}) =>
  (await proxy.ask(LIST, { headers })).headers['cache-status'];

const write = (proxy: Proxy, name: string): ReturnType<Proxy['ask']> =>
  proxy.ask(`/api/handles/${PREFIX}/${name}`, {
    method: 'PUT',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ values: [textValue(1, 'URL', 'https://example.org/'), adminValue()] }),
  });

describe('a list of a mirror with a login', () => {
  it('comes from the server unless the operator makes lists public', async () => {
    const { proxy } = await startMirror({ MIRROR_PUBLIC_LISTS: 'false' });
    const { status, headers } = await proxy.ask(LIST);
    expect([status, headers['cache-status']]).toEqual([401, RELAYED]);
  });

  it('survives an outage, with a login as an error', async () => {
    const { proxy, server } = await startMirror();
    server.fail('reset');
    const { status, text } = await proxy.ask(LIST);
    expect([status, text]).toEqual([
      200,
      `{"responseCode":1,"prefix":"${PREFIX}","totalCount":"2","handles":["${PREFIX}/A","${PREFIX}/USER01"]}`,
    ]);
    expect((await proxy.ask(LIST, { headers: { authorization } })).status).toBe(502);
  });

  it('comes from the server for a caller with a login, whose password it must check', async () => {
    const { proxy } = await startMirror();
    const wrong = { authorization: basic(USER, 'wrong') };
    expect((await proxy.ask(LIST, { headers: wrong })).status).toBe(401);
    expect(await statusOf(proxy, { authorization })).toBe(RELAYED);
    expect(await statusOf(proxy)).toBe(HIT);
  });

  it('comes from the server after a write', async () => {
    const { proxy } = await startMirror();
    expect((await write(proxy, 'NEW')).status).toBe(201);
    expect((await proxy.ask(LIST, { headers: { authorization } })).text).toContain('/NEW');
    expect(await statusOf(proxy)).toBe(RELAYED);
  });

  it('comes from the mirror again after the next list, with the handle that was written', async () => {
    const { proxy } = await startMirror({ MIRROR_INTERVAL: '1s' });
    expect((await write(proxy, 'NEW')).status).toBe(201);
    await expect.poll(() => statusOf(proxy)).toBe(HIT);
    expect((await proxy.ask(LIST)).text).toContain('/NEW');
  });

  it('comes from the server after a deletion', async () => {
    const { proxy } = await startMirror();
    const path = `/api/handles/${PREFIX}/A`;
    expect((await proxy.ask(path, { method: 'DELETE', headers: { authorization } })).status).toBe(200);
    expect(await statusOf(proxy)).toBe(RELAYED);
  });

  it('stays in the mirror after a write to a different prefix, and after a refused write', async () => {
    const { proxy } = await startMirror();
    expect((await proxy.ask(`/api/handles/${PREFIX}/A`, { method: 'PUT', body: '{}' })).status).not.toBe(200);
    await proxy.app.operations.purge({ prefix: '21.T1199/', isSoft: false });
    expect(await statusOf(proxy)).toBe(HIT);
  });

  it.each([PREFIX, ''])('comes from the server after a purge of "%s"', async (prefix) => {
    const { proxy } = await startMirror();
    await proxy.app.operations.purge({ prefix, isSoft: true });
    expect(await statusOf(proxy)).toBe(RELAYED);
  });
});
