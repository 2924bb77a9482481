import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RecordInput } from '../../src/dev-server/store.js';
import { textValue } from '../../src/dev-server/seed.js';
import { batchTarget, numbered } from '../support/batch.js';
import { basic, startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';

const PASSWORD = 'secret';

/** Starts a Handle server with the record `<prefix>/page`, which the user `<prefix>/USER` may change. */
function startServer(
  prefix: string,
  { prefixes = [prefix], extra = {} }: { prefixes?: string[]; extra?: Record<string, RecordInput> } = {},
) {
  const permissions = '111111111111';
  const admin = {
    index: 100,
    type: 'HS_ADMIN',
    data: { format: 'admin', value: { handle: `${prefix}/USER`, index: 300, permissions } },
  } as const;
  const page = [textValue(1, 'URL', `https://example.org/${prefix}`), admin];
  const user = [
    {
      index: 300,
      type: 'HS_SECKEY',
      data: { format: 'string', value: PASSWORD },
      permissions: '1100',
    } as const,
    admin,
  ];
  const seed = { [`0.NA/${prefix}`]: [admin], [`${prefix}/page`]: page, [`${prefix}/USER`]: user, ...extra };
  return startDemoServer({ prefixes, seed, serverAdmins: [] });
}

const a = await startServer('21.T1');
const b = await startServer('20.500.99', { prefixes: ['0.NA', '20.500.99'] });
const others = await startServer('10.1000', {
  prefixes: ['0.NA', '10.1000'],
  extra: { '0.NA/21.T1': [textValue(1, 'DESC', 'known at the root only')] },
});

const UPSTREAMS = JSON.stringify([
  { prefixes: ['21.T1', '21.T1.*'], url: a.url },
  { prefixes: '20.500.99', url: b.url, concurrency: 100 },
  { prefixes: ['*'], url: others.url, readOnly: true },
]);

async function start(env: Record<string, string> = {}) {
  for (const server of [a, b, others]) server.reset();
  const proxy = await startProxy({ UPSTREAMS, ...env });
  const login = (prefix: string) => ({ Authorization: basic(`300:${prefix}/USER`, PASSWORD) });
  const put = async (handle: string, { path = '/api/handles', as = '21.T1', body = WRITE } = {}) => {
    const headers = { ...login(as), 'Content-Type': 'application/json' };
    const response = await fetch(`${proxy.url}${path}/${handle}`, { method: 'PUT', headers, body });
    return { status: response.status, body: await response.text() };
  };
  return { ...proxy, login, put };
}

const WRITE = JSON.stringify([textValue(1, 'URL', 'https://example.org/new')]);
const V2_WRITE = JSON.stringify([{ idx: 1, type: 'URL', parsed_data: 'https://example.org/v2' }]);
const asked = (): number[] => [a.asked, b.asked, others.asked];

describe('proxy with several upstream servers', () => {
  test('routes a read to the server for its prefix, and caches the response', async () => {
    const { ask } = await start();
    for (const handle of ['21.T1/page', '20.500.99/page', '10.1000/page', '20.500.99/PAGE', '21.t1/page']) {
      const { status, body } = await ask(`/api/handles/${handle}`);
      expect([status, JSON.parse(body.toString())]).toEqual([
        200,
        expect.objectContaining({ responseCode: 1, handle }),
      ]);
    }
    expect(asked()).toEqual([1, 1, 1]);
  });

  test('exports a metric series for each server, even an unused server', async () => {
    const { ask, app } = await start();
    for (const handle of ['21.T1/page', '20.500.99/page', '20.500.99/none'])
      await ask(`/api/handles/${handle}`);
    const { text } = await request(app.admin).get('/metrics');
    const counted = (url: string, outcome: string): string | undefined =>
      text
        .split('\n')
        .find((line) =>
          line.startsWith(`handle_proxy_upstream_requests_total{server="${url}",outcome="${outcome}"}`),
        )
        ?.split(' ')[1];
    expect([a, b, others].map(({ url }) => [counted(url, 'found'), counted(url, 'not-found')])).toEqual([
      ['1', '0'],
      ['1', '1'],
      ['0', '0'],
    ]);
    for (const { url } of [a, b, others]) {
      expect(text).toContain(`handle_proxy_upstream_requests_in_flight{server="${url}",kind="read"} 0`);
    }
  });

  test('exports each metric series once, also if two servers have the same address', async () => {
    const sharing = [
      { prefixes: ['21.T1'], url: a.url, concurrency: 10 },
      { prefixes: ['20.500.99'], url: a.url, concurrency: 5, readOnly: true },
    ];
    const { app } = await start({ UPSTREAMS: JSON.stringify(sharing) });
    const { text } = await request(app.admin).get('/metrics');
    const series = text.split('\n').filter((line) => line.includes(a.url));
    const names = series.map((line) => line.slice(0, line.lastIndexOf(' ')));
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    const limit = 'handle_proxy_upstream_concurrency_limit';
    expect(series).toContain(`${limit}{server="${a.url}",kind="read"} 15`);
  });

  test('reads a prefix record from the server for its prefix, and otherwise from the default server', async () => {
    const { ask } = await start();
    expect((await ask('/api/handles/0.NA/20.500.99')).status).toBe(200);
    expect((await ask('/api/handles/0.NA/21.T1')).body.toString()).toContain('known at the root only');
    expect(asked()).toEqual([1, 1, 1]);
  });

  test('routes a write to the server for its prefix, and serves the change immediately', async () => {
    const { ask, put } = await start();
    await ask('/api/handles/20.500.99/page');
    expect(await put('20.500.99/page', { as: '20.500.99' })).toMatchObject({ status: 200 });
    expect(others.asked + a.asked).toBe(0);
    expect((await ask('/api/handles/20.500.99/page')).body.toString()).toContain('https://example.org/new');
    const v2 = { path: '/api/v2/handles', as: '21.T1', body: V2_WRITE };
    expect(await put('21.T1/page', v2)).toMatchObject({ status: 204 });
    expect((await ask('/api/handles/21.T1/page')).body.toString()).toContain('https://example.org/v2');
  });

  test.each(['/api/handles', '/api/v2/handles'])(
    'rejects a write through %s to a read-only server, without forwarding it',
    async (path) => {
      const { put } = await start();
      const body = path === '/api/handles' ? WRITE : V2_WRITE;
      const refused = await put('10.1000/new', { path, as: '10.1000', body });
      expect(refused.status).toBe(403);
      expect(refused.body).toContain('read-only');
      expect(others.lastRequest?.method ?? 'GET').toBe('GET');
    },
  );

  test('sends no credentials to a read-only server', async () => {
    const { ask, login } = await start();
    const headers = login('21.T1');
    expect((await ask('/api/handles/10.1000/page', { headers })).status).toBe(200);
    expect(others.lastRequest?.headers.authorization).toBeUndefined();
    expect((await ask('/api/handles/20.500.99/page', { headers })).status).toBe(401);
    expect(b.lastRequest?.headers.authorization).toBeDefined();
  });

  test('routes a list by prefix, and a session or site request to the first writable server', async () => {
    const { ask, login } = await start();
    const list = await ask('/api/handles?prefix=20.500.99', { headers: login('20.500.99') });
    expect(list.body.toString()).toContain('20.500.99/USER');
    expect(asked()).toEqual([0, 1, 0]);
    expect((await ask('/api/sessions', { method: 'POST' })).status).toBe(201);
    for (const query of ['', '?prefix=20.500.99']) await ask(`/api/site${query}`);
    expect(asked()).toEqual([3, 1, 0]);
  });

  const sessionOf = (sessionId: string) => ({
    Authorization: `Handle sessionId="${sessionId}"`,
  });

  test('restricts a session to the server that opened it', async () => {
    const { ask, login } = await start();
    const opened = await ask('/api/sessions', { method: 'POST', headers: login('21.T1') });
    const { sessionId } = JSON.parse(opened.text) as { sessionId: string };
    const headers = { ...sessionOf(sessionId), 'Content-Type': 'application/json', 'If-Match': '*' };
    expect((await ask('/api/handles/21.T1/USER', { headers })).text).toContain('HS_SECKEY');
    expect(a.lastRequest?.headers.authorization).toBe(headers.Authorization);
    expect((await ask('/api/handles/20.500.99/page', { headers })).status).toBe(200);
    expect(b.lastRequest?.headers.authorization).toBeUndefined();
    const written = await ask('/api/handles/20.500.99/page', { method: 'PUT', headers, body: WRITE });
    expect([written.status, b.lastRequest?.headers.authorization]).toEqual([401, undefined]);
  });

  test('restricts a challenge session to the server that opened it', async () => {
    const { ask } = await start();
    const place = '/api/handles/20.500.99/page';
    const body = WRITE;
    const refused = await ask(place, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json', 'If-Match': '*' },
      body,
    });
    const [, sessionId = '', nonce = ''] =
      /Handle sessionId="([^"]+)", nonce="([^"]+)"/.exec(refused.headers['www-authenticate'] ?? '') ?? [];
    const signed = [PASSWORD, Buffer.from(nonce, 'base64'), Buffer.from('client'), PASSWORD];
    const signature = signed.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('base64');
    const cnonce = Buffer.from('client').toString('base64');
    const answer = `id="300%3A20.500.99/USER", type="HS_SECKEY", alg="SHA256", cnonce="${cnonce}", signature="${signature}"`;
    const headers = {
      Authorization: `Handle sessionId="${sessionId}", ${answer}`,
      'Content-Type': 'application/json',
    };
    expect((await ask(place, { method: 'PUT', headers, body })).status).toBe(200);
    expect(
      (await ask(place, { method: 'PUT', headers: { ...headers, ...sessionOf(sessionId) }, body })).status,
    ).toBe(200);
    await ask('/api/handles/21.T1/page', { headers: sessionOf(sessionId) });
    expect(a.lastRequest?.headers.authorization).toBeUndefined();
    const asJson = JSON.stringify({
      sessionId,
      id: '300:20.500.99/USER',
      type: 'HS_SECKEY',
      cnonce,
      signature,
    });
    const json = { 'Content-Type': 'application/json' };
    const refusedHere = await ask('/api/sessions/this', { method: 'POST', headers: json, body: asJson });
    expect([refusedHere.status, a.lastRequest?.headers['content-length']]).toEqual([403, '0']);
  });

  test('reads a referred prefix record at the default server', async () => {
    const referring = createServer((_req, res) => {
      res.writeHead(300, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify({ responseCode: 303, handle: '0.NA/21.T1', referralHandle: '0.NA/21.T1' }));
    }).listen(0, '127.0.0.1');
    await once(referring, 'listening');
    onTestFinished(() => {
      referring.closeAllConnections();
      referring.close();
    });
    const { port } = referring.address() as AddressInfo;
    const { ask } = await start({
      UPSTREAMS: JSON.stringify([
        { prefixes: ['21.T1'], url: `http://127.0.0.1:${port}` },
        { prefixes: ['*'], url: others.url, readOnly: true },
      ]),
    });
    expect((await ask('/api/handles/0.NA/21.T1')).body.toString()).toContain('known at the root only');
  });

  test('verifies a signature at the server for the signing key’s handle', async () => {
    const { ask } = await start();
    await ask('/api/verifications/300:20.500.99/USER?nonce=AA&cnonce=AA&alg=SHA-1&signature=AA');
    await ask('/api/verifications/300%3A20.500.99/USER', { method: 'POST' });
    expect(asked()).toEqual([0, 2, 0]);
  });

  const NOT_HERE = { responseCode: 301, message: "That prefix doesn't live here" };

  test('rejects a handle whose prefix has no server, as a Handle server does', async () => {
    const { ask, put, login } = await start({
      UPSTREAMS: JSON.stringify([{ prefixes: '21.T1', url: a.url }]),
    });
    const read = await ask('/api/handles/99.X/page');
    expect([read.status, JSON.parse(read.body.toString())]).toEqual([
      400,
      { ...NOT_HERE, handle: '99.X/page' },
    ]);
    const written = await put('99.X/page');
    expect([written.status, JSON.parse(written.body)]).toEqual([400, expect.objectContaining(NOT_HERE)]);
    expect((await ask('/api/handles?prefix=99.X')).status).toBe(400);
    expect((await ask('/api/v2/handles/99.X/page', { headers: login('21.T1') })).status).toBe(404);
    expect(a.asked).toBe(0);
  });

  test('does not delay reads from other servers when one hangs', async () => {
    const { ask } = await start();
    b.hold.holdReplies('GET');
    const hanging = Array.from({ length: 80 }, (_, at) => ask(`/api/handles/20.500.99/h${at}`));
    await expect.poll(() => b.asked).toBeGreaterThan(0);
    for (let at = 0; at < 20; at++) expect((await ask(`/api/handles/21.T1/m${at}`)).status).toBe(404);
    expect(a.asked).toBe(20);
    b.hold.sendHeld('GET');
    expect((await Promise.all(hanging)).map(({ status }) => status)).toContain(404);
  });

  test('loads a batch by the concurrency of its server, whatever the others allow', async () => {
    const several = [
      { prefixes: ['21.T1'], url: a.url, concurrency: 4 },
      { prefixes: ['20.500.99'], url: b.url, concurrency: 40 },
    ];
    const { ask } = await start({ UPSTREAMS: JSON.stringify(several) });
    for (const { hold } of [a, b]) hold.holdReplies('GET');
    const batches = ['21.T1', '20.500.99'].map((prefix) => ask(batchTarget(numbered(30, prefix))));
    await expect.poll(asked).toEqual([1, 10, 0]);
    for (const { hold } of [a, b]) hold.sendHeld('GET');
    for (const { status } of await Promise.all(batches)) expect(status).toBe(200);
  });

  test('does not delay batches from other servers when one hangs', async () => {
    const { ask } = await start({ UPSTREAM_CONCURRENCY: '8' });
    b.hold.holdReplies('GET');
    const hanging = [0, 1, 2, 3].map((at) => ask(batchTarget(numbered(20, `20.500.99/batch${at}`))));
    // All batches together use at most half of the concurrency of their server.
    await expect.poll(() => b.asked).toBe(50);
    const { body } = await ask(batchTarget(['21.T1/page', '99.X/none', '21.T1/none']));
    const elements = JSON.parse(body.toString()) as { status: number }[];
    expect(elements.map(({ status }) => status)).toEqual([200, 400, 404]);
    b.hold.sendHeld('GET');
    for (const { status } of await Promise.all(hanging)) expect(status).toBe(200);
  });
});
