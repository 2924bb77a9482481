// ePIC v2 writes over real sockets, read back through both interfaces.
import nock from 'nock';
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Asked } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type AskV2, USER01, askV2, gist, read, urlTo } from '../support/v2.js';

nock.restore();

const demo = await startDemoServer();

async function start(env: Record<string, string> = {}): Promise<{ v2: AskV2; proxy: Proxy }> {
  const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...env });
  return { v2: askV2(proxy.url), proxy };
}

const newName = (): string => `21.T11998/V2-${randomUUID().toUpperCase()}`;

const adminOf = (adminId: string, adminIdIndex: number): unknown => ({
  adminId,
  adminIdIndex,
  perms: {
    add_handle: true,
    delete_handle: true,
    add_naming_auth: false,
    delete_naming_auth: false,
    modify_value: true,
    remove_value: true,
    add_value: true,
    read_value: true,
    modify_admin: true,
    remove_admin: true,
    add_admin: true,
    list_handles: false,
  },
});

const recordData = (answer: Asked): unknown[] =>
  (read(answer) as { values: { data: { value: unknown } }[] }).values.map(({ data }) => data.value);

describe('new ePIC v2 handle', () => {
  test('is created with an administrator, and read back', async () => {
    const { v2, proxy } = await start();
    const name = newName();
    const created = await v2(`/${name}`, { method: 'PUT', body: [urlTo('one')] });
    expect(created.status).toBe(201);
    expect(created.headers).toMatchObject({
      location: `${proxy.url}/api/v2/handles/${name}`,
      'content-type': 'application/json;charset=utf-8',
      'content-length': String(created.body.length),
      etag: expect.stringMatching(/^"[\w-]{22}"$/) as string,
      date: expect.stringMatching(/ GMT$/) as string,
    });
    expect(read(created)).toEqual({ 'epic-pid': name });

    const answer = await v2(`/${name}`);
    expect(answer.status).toBe(200);
    expect(answer.headers.etag).toBe(created.headers.etag);
    expect(gist(answer)).toEqual([
      [1, 'URL', 'https://example.org/one'],
      [100, 'HS_ADMIN', adminOf('0.NA/21.T11998', 200)],
    ]);
  });

  test('is visible through the record interface immediately after a cached 404', async () => {
    const { v2, proxy } = await start();
    const name = newName();
    expect((await proxy.ask(`/api/handles/${name}`)).status).toBe(404);
    await v2(`/${name}`, { method: 'PUT', body: [urlTo('one')] });
    expect(recordData(await proxy.ask(`/api/handles/${name}?type=URL`))).toEqual(['https://example.org/one']);
  });

  test('is created once with If-None-Match: *, after which the request returns 412', async () => {
    const { v2 } = await start();
    const put = { method: 'PUT', headers: { 'If-None-Match': '*' } };
    const name = newName();
    expect((await v2(`/${name}`, { ...put, body: [urlTo('one')] })).status).toBe(201);
    const again = await v2(`/${name}`, { ...put, body: [urlTo('two')] });
    expect([again.status, again.headers['content-type']]).toEqual([412, 'application/problem+json']);
    expect(gist(await v2(`/${name}`))[0]).toEqual([1, 'URL', 'https://example.org/one']);
  });

  test('is not created with If-Match', async () => {
    const { v2 } = await start();
    const name = newName();
    const put = { method: 'PUT', body: [urlTo('one')], headers: { 'If-Match': '*' } };
    expect((await v2(`/${name}`, put)).status).toBe(412);
    expect((await v2(`/${name}`)).status).toBe(404);
  });
});

describe('ePIC v2 update', () => {
  test('returns 204 with the ETag of the stored record, visible through both interfaces', async () => {
    const { v2, proxy } = await start();
    const name = newName();
    const created = await v2(`/${name}`, { method: 'PUT', body: [urlTo('one')] });
    await proxy.ask(`/api/handles/${name}`);
    const updated = await v2(`/${name}`, { method: 'PUT', body: [urlTo('two')] });
    expect([updated.status, updated.text]).toEqual([204, '']);
    expect(updated.headers.etag).not.toBe(created.headers.etag);
    const now = await v2(`/${name}`);
    expect(now.headers.etag).toBe(updated.headers.etag);
    expect(recordData(await proxy.ask(`/api/handles/${name}?index=1`))).toEqual(['https://example.org/two']);
  });

  test('succeeds with the current ETag, and returns 412 with an old ETag', async () => {
    const { v2 } = await start();
    const name = newName();
    const { etag = '' } = (await v2(`/${name}`, { method: 'PUT', body: [urlTo('one')] })).headers;
    const put = (place: string): Promise<Asked> =>
      v2(`/${name}`, { method: 'PUT', body: [urlTo(place)], headers: { 'If-Match': etag } });
    expect((await put('two')).status).toBe(204);
    expect((await put('three')).status).toBe(412);
    expect(gist(await v2(`/${name}`))[0]).toEqual([1, 'URL', 'https://example.org/two']);
  });

  test('changes nothing when it sends back the value list of a GET', async () => {
    const { v2 } = await start();
    const before = await v2('/21.T11998/DEMO');
    const put = await v2('/21.T11998/DEMO', { method: 'PUT', body: before.text });
    expect([put.status, put.headers.etag]).toEqual([204, before.headers.etag]);
    expect((await v2('/21.T11998/DEMO')).text).toBe(before.text);
  });

  test('preserves a secret key', async () => {
    const { v2, proxy } = await start();
    const name = newName();
    demo.put(name, [
      { index: 1, type: 'URL', data: 'https://example.org/old' },
      { index: 300, type: 'HS_SECKEY', data: 'hidden', permissions: '1100' },
      {
        index: 100,
        type: 'HS_ADMIN',
        data: {
          format: 'admin',
          value: { handle: '0.NA/21.T11998', index: 200, permissions: '011111110011' },
        },
      },
    ]);
    expect(gist(await v2(`/${name}`)).map(([idx]) => idx)).toEqual([1, 100]);
    expect((await v2(`/${name}`, { method: 'PUT', body: [urlTo('new')] })).status).toBe(204);
    const whole = await proxy.ask(`/api/handles/${name}`, { headers: { Authorization: USER01 } });
    expect(recordData(whole)).toContain('hidden');
    const taken = await v2(`/${name}`, { method: 'PUT', body: [{ idx: 300, ...urlTo('x') }] });
    expect(taken.status).toBe(400);
  });

  test('does not hide a later change through the record interface', async () => {
    const { v2, proxy } = await start({ V2_ANONYMOUS_READ: 'true' });
    const name = newName();
    await v2(`/${name}`, { method: 'PUT', body: [urlTo('one')] });
    expect(gist(await v2(`/${name}`, { as: null }))[0]).toEqual([1, 'URL', 'https://example.org/one']);
    const changed = await proxy.ask(`/api/handles/${name}?index=1`, {
      method: 'PUT',
      headers: { Authorization: USER01, 'Content-Type': 'application/json' },
      body: JSON.stringify([{ index: 1, type: 'URL', data: 'https://example.org/record' }]),
    });
    expect(changed.status).toBe(200);
    expect(gist(await v2(`/${name}`, { as: null }))[0]).toEqual([1, 'URL', 'https://example.org/record']);
  });

  test('is rejected when it would lock out the caller', async () => {
    const { v2 } = await start();
    const name = newName();
    const stranger = { type: 'HS_ADMIN', parsed_data: adminOf('21.T11998/USER02', 300) };
    const put = await v2(`/${name}`, { method: 'PUT', body: [urlTo('one'), stranger] });
    expect([put.status, (read(put) as { code: string }).code]).toEqual([400, 'V2_LOCKOUT']);
    const group = { type: 'HS_ADMIN', parsed_data: adminOf('0.NA/21.T11998', 200) };
    expect((await v2(`/${name}`, { method: 'PUT', body: [urlTo('one'), group] })).status).toBe(201);
  });
});

describe('ePIC v2 POST', () => {
  test('creates two handles when sent twice', async () => {
    const { v2, proxy } = await start();
    const post = (): Promise<Asked> =>
      v2('/21.T11998?prefix=a-&suffix=-z', { method: 'POST', body: [urlTo('one')] });
    const [one, other] = [await post(), await post()];
    expect([one.status, other.status]).toEqual([201, 201]);
    const names = [one, other].map((answer) => (read(answer) as { 'epic-pid': string })['epic-pid']);
    expect(new Set(names).size).toBe(2);
    for (const name of names) {
      expect(name).toMatch(/^21\.T11998\/a-[\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12}-z$/);
      expect((await v2(`/${name}`)).status).toBe(200);
    }
    expect(one.headers.location).toBe(`${proxy.url}/api/v2/handles/${names[0]!}`);
  });

  test('creates one handle when repeated with its Idempotency-Key', async () => {
    const { v2 } = await start();
    const headers = { 'Idempotency-Key': randomUUID() };
    const post = (place: string): Promise<Asked> =>
      v2('/21.T11998/', { method: 'POST', body: [urlTo(place)], headers });
    const [one, again] = [await post('one'), await post('one')];
    expect([one.status, again.status]).toEqual([201, 201]);
    expect(read(again)).toEqual(read(one));
    expect((await post('two')).status).toBe(412);
  });

  test('creates its handle despite a lost upstream response', async () => {
    const { v2 } = await start({ UPSTREAM_WRITE_TIMEOUT: '300ms' });
    const headers = { 'Idempotency-Key': randomUUID() };
    demo.fail('hang', { times: 1 });
    const answer = await v2('/21.T11998', { method: 'POST', body: [urlTo('one')], headers });
    demo.heal();
    expect(answer.status).toBe(201);
    const name = (read(answer) as { 'epic-pid': string })['epic-pid'];
    expect(gist(await v2(`/${name}`))[0]).toEqual([1, 'URL', 'https://example.org/one']);
  });
});

describe('ePIC v2 DELETE', () => {
  test('returns 403 with a reason, or 404 for a missing handle', async () => {
    const { v2 } = await start();
    const refused = await v2('/21.T11998/page', { method: 'DELETE' });
    expect(refused.status).toBe(403);
    expect(read(refused)).toMatchObject({
      status: 403,
      detail: expect.stringContaining('nodelete') as string,
    });
    expect((await v2(`/${newName()}`, { method: 'DELETE' })).status).toBe(404);
  });

  test('returns 204 when deletion is allowed, and both interfaces return 404 afterwards', async () => {
    const { v2, proxy } = await start({ DELETION_HANDLES: 'true' });
    const name = newName();
    await v2(`/${name}`, { method: 'PUT', body: [urlTo('one')] });
    expect((await proxy.ask(`/api/handles/${name}`)).status).toBe(200);
    const gone = await v2(`/${name}?redirect=no`, { method: 'DELETE' });
    expect([gone.status, gone.text]).toEqual([204, '']);
    expect((await proxy.ask(`/api/handles/${name}`)).status).toBe(404);
    expect((await v2(`/${name}`, { method: 'DELETE' })).status).toBe(404);
  });
});
