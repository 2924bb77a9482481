// If-Match and If-None-Match on the record interface: a failed condition returns 412 and changes nothing.
import '../support/real-sockets.js';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mapLimited } from '../../src/v2/collection.js';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { type Asked, ask } from '../support/ask.js';
import { startConnectedProxy } from '../support/built-proxy.js';
import { basic, startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberIn, numbered, numberedBody } from '../support/demo-writes.js';
import { fixed } from '../support/fixed.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { HANDLE, PATH } from '../support/upstream.js';

const demo = await startDemoServer();
const NEW_PATH = '/api/handles/21.T11998/new-one';
const SECRET = { ...textValue(7, 'NOTE', 'secret'), permissions: '1100' };

let proxy: Proxy;
beforeEach(async () => {
  demo.heal();
  demo.put(HANDLE, numbered(1));
  demo.reset();
  proxy = await startProxy({ UPSTREAM_URL: demo.url, DELETION_HANDLES: 'true', DELETION_VALUES: 'true' });
});

const write = (
  condition: Record<string, string>,
  { path = PATH, method = 'PUT', body = numberedBody(2), headers = WRITE_HEADERS } = {},
): Promise<Asked> =>
  proxy.ask(path, { method, headers: { ...headers, ...condition }, ...(method === 'PUT' && { body }) });

const tagOf = async (path = PATH, headers: Record<string, string> = {}): Promise<string> =>
  (await proxy.ask(path, { headers })).headers.etag ?? '';

async function expectUnchanged(answer: Asked): Promise<void> {
  expect(answer.status).toBe(412);
  expect(JSON.parse(answer.text)).toEqual({
    responseCode: 4,
    message: expect.stringContaining('Precondition failed') as string,
    code: 'PRECONDITION_FAILED',
    handle: HANDLE,
  });
  expect(numberIn(await ask(demo.url, PATH))).toBe(1);
}

describe('conditional write', () => {
  describe('If-Match', () => {
    test('accepts the ETag of a GET, after which the next GET has a new ETag', async () => {
      const tag = await tagOf();
      expect((await write({ 'If-Match': tag })).status).toBe(200);
      const after = await proxy.ask(PATH);
      expect(numberIn(after)).toBe(2);
      expect(after.headers.etag).not.toBe(tag);
      expect((await write({ 'If-Match': after.headers.etag ?? '' })).status).toBe(200);
    });

    test.each([
      ['*', '*'],
      ['a list that contains the ETag', 'LIST'],
      ['the ETag of the compressed response', 'GZIP'],
      ['the ETag of the indented response', 'PRETTY'],
      ['the ETag of an authenticated GET', 'CALLER'],
    ])('accepts %s', async (_what, kind) => {
      const tag = await tagOf();
      const given: Record<string, () => Promise<string> | string> = {
        '*': () => '*',
        LIST: () => `"other", ${tag}, W/"x"`,
        GZIP: () => tag.replace(/"$/, '-gz"'),
        PRETTY: () => tagOf(`${PATH}?pretty`),
        CALLER: () => tagOf(PATH, WRITE_HEADERS),
      };
      expect((await write({ 'If-Match': await given[kind]!() })).status).toBe(200);
    });

    test.each([
      ['a different ETag', '"other"'],
      ['a weak form of the ETag', 'W/TAG'],
    ])('returns 412 for %s', async (_what, given) => {
      const tag = await tagOf();
      await expectUnchanged(await write({ 'If-Match': given.replace('TAG', tag) }));
      await expectUnchanged(await write({ 'If-Match': given.replace('TAG', tag) }, { method: 'DELETE' }));
    });

    test('returns 412 to PUT and DELETE with the ETag of an older record', async () => {
      const tag = await tagOf();
      demo.put(HANDLE, [...numbered(1), textValue(5, 'NOTE', 'changed at the server')]);
      await expectUnchanged(await write({ 'If-Match': tag }));
      await expectUnchanged(await write({ 'If-Match': tag }, { method: 'DELETE' }));
    });

    test('accepts DELETE with the current ETag', async () => {
      expect((await write({ 'If-Match': await tagOf() }, { method: 'DELETE' })).status).toBe(200);
      expect((await proxy.ask(PATH)).status).toBe(404);
    });

    test('returns 412 for any ETag and for * when the handle is missing', async () => {
      for (const given of ['*', '"x"']) {
        const answer = await write({ 'If-Match': given }, { path: NEW_PATH });
        expect(answer.status).toBe(412);
        expect((await ask(demo.url, NEW_PATH)).status).toBe(404);
      }
    });

    test('compares the private values that the caller can see', async () => {
      demo.put(HANDLE, [...numbered(1), SECRET]);
      const [anonymous, own] = [await tagOf(), await tagOf(PATH, WRITE_HEADERS)];
      expect(anonymous).not.toBe(own);
      await expectUnchanged(await write({ 'If-Match': anonymous }));
      const body = JSON.stringify([...numbered(2), SECRET]);
      expect((await write({ 'If-Match': own }, { body })).status).toBe(200);
    });

    test('returns 400, and writes nothing, when it is not a list of ETags', async () => {
      expect((await write({ 'If-Match': 'bare' })).status).toBe(400);
      expect(numberIn(await ask(demo.url, PATH))).toBe(1);
    });
  });

  describe('authenticated GET that accepts gzip', () => {
    const GZIP = { ...WRITE_HEADERS, 'Accept-Encoding': 'gzip, deflate' };

    test('returns the ETag of the compressed response, which If-Match accepts', async () => {
      const seen = await proxy.ask(PATH, { headers: GZIP });
      expect(seen.headers['content-encoding']).toBe('gzip');
      expect(seen.headers.etag).toBe((await tagOf(PATH, WRITE_HEADERS)).replace(/"$/, '-gz"'));
      expect((await write({ 'If-Match': seen.headers.etag ?? '' })).status).toBe(200);
      expect((await write({ 'If-Match': seen.headers.etag ?? '' })).status).toBe(412);
    });

    test('returns no ETag when the record exceeds upstream.maxRecordSize', async () => {
      demo.put(HANDLE, [...numbered(1), textValue(5, 'NOTE', 'x'.repeat(4000))]);
      proxy = await startProxy({ UPSTREAM_URL: demo.url, UPSTREAM_MAX_RECORD_SIZE: '2KiB' });
      const seen = await proxy.ask(PATH, { headers: GZIP });
      expect([seen.status, seen.headers['content-encoding'], seen.headers.etag]).toEqual([
        200,
        'gzip',
        undefined,
      ]);
      expect((await proxy.ask(PATH, { headers: WRITE_HEADERS })).status).toBe(502);
    });

    test('returns the ETag with ?index= and with ?pretty', async () => {
      for (const query of ['index=100', 'pretty', 'index=100&pretty']) {
        const path = `${PATH}?${query}`;
        const tag = await tagOf(path, GZIP);
        expect(tag).toBe((await tagOf(path, WRITE_HEADERS)).replace(/"$/, '-gz"'));
      }
    });
  });

  describe('If-Match with ?index=', () => {
    const VALUE = `${PATH}?index=1`;
    const body = JSON.stringify([textValue(1, 'URL', 'https://example.org/2')]);
    const first = JSON.stringify([textValue(1, 'URL', 'https://example.org/1')]);

    test('accepts the ETag of a GET with the same index', async () => {
      const tag = await tagOf(VALUE);
      const other = JSON.stringify([textValue(5, 'NOTE', 'another value does not matter')]);
      await ask(demo.url, `${PATH}?index=5`, { method: 'PUT', headers: WRITE_HEADERS, body: other });
      expect((await write({ 'If-Match': tag }, { path: VALUE, body })).status).toBe(200);
      await proxy.ask(PATH);
      expect((await write({ 'If-Match': tag }, { path: VALUE, body })).status).toBe(412);
      const next = await tagOf(VALUE);
      expect((await write({ 'If-Match': next }, { path: VALUE, method: 'DELETE' })).status).toBe(200);
    });

    test('accepts the ETag of the complete record as the caller sees it, until any value changes', async () => {
      demo.put(HANDLE, [...numbered(1), SECRET]);
      for (const path of [PATH, `${PATH}?pretty`]) {
        const tag = await tagOf(path, WRITE_HEADERS);
        expect((await write({ 'If-Match': tag }, { path: VALUE, body: first })).status).toBe(200);
      }
      const whole = await tagOf(PATH, WRITE_HEADERS);
      const anonymous = await tagOf();
      expect((await write({ 'If-Match': anonymous }, { path: VALUE, body })).status).toBe(412);
      const other = JSON.stringify([textValue(5, 'NOTE', 'another value matters')]);
      await ask(demo.url, `${PATH}?index=5`, { method: 'PUT', headers: WRITE_HEADERS, body: other });
      expect((await write({ 'If-Match': whole }, { path: VALUE, body })).status).toBe(412);
    });

    test('accepts the ETag of the complete record when the value is missing', async () => {
      const added = { path: `${PATH}?index=50`, body: JSON.stringify([textValue(50, 'NOTE', 'new')]) };
      expect((await write({ 'If-Match': '"other"' }, added)).status).toBe(412);
      const tag = await tagOf(PATH, WRITE_HEADERS);
      expect((await write({ 'If-Match': tag }, added)).status).toBe(201);
      expect((await write({ 'If-Match': tag }, added)).status).toBe(412);
    });

    test('returns 412 for * when none of the values exists', async () => {
      expect((await write({ 'If-Match': '*' }, { path: `${PATH}?index=50`, body })).status).toBe(412);
    });
  });

  describe('If-None-Match', () => {
    test('creates a handle with *, and never overwrites an existing handle', async () => {
      expect((await write({ 'If-None-Match': '*' }, { path: NEW_PATH })).status).toBe(201);
      await expectUnchanged(await write({ 'If-None-Match': '*' }));
      for (const name of ['overwrite', '%6Fverwrite'])
        await expectUnchanged(await write({ 'If-None-Match': '*' }, { path: `${PATH}?${name}=true` }));
    });

    test('adds a value with * and an index, and never overwrites an existing value', async () => {
      const value = (index: number): string => JSON.stringify([textValue(index, 'NOTE', 'new')]);
      expect(
        (await write({ 'If-None-Match': '*' }, { path: `${PATH}?index=50`, body: value(50) })).status,
      ).toBe(201);
      await expectUnchanged(
        await write({ 'If-None-Match': '*' }, { path: `${PATH}?index=1`, body: value(1) }),
      );
    });

    test('returns 412 for the current ETag, and forwards the write for a different ETag', async () => {
      const tag = await tagOf();
      await expectUnchanged(await write({ 'If-None-Match': tag }));
      await expectUnchanged(await write({ 'If-None-Match': `W/${tag}` }, { method: 'DELETE' }));
      await expectUnchanged(await write({ 'If-None-Match': '*' }, { method: 'DELETE' }));
      expect((await write({ 'If-None-Match': '"other"' })).status).toBe(200);
    });
  });

  test("returns the Handle server's response to a wrong password, and writes nothing", async () => {
    const headers = { ...WRITE_HEADERS, Authorization: basic('300:21.T11998/USER01', 'wrong') };
    const answer = await write({ 'If-Match': await tagOf() }, { headers });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toContain('Basic');
    expect(numberIn(await ask(demo.url, PATH))).toBe(1);
  });

  test('is the only kind of write before which the record is read', async () => {
    expect((await write({})).status).toBe(200);
    expect(demo.askedFor(HANDLE)).toBe(1);
  });

  test('returns 5xx and writes nothing when the record that the condition refers to cannot be read', async () => {
    demo.fail('error', { times: 1 });
    const answer = await write({ 'If-Match': '*' });
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(numberIn(await ask(demo.url, PATH))).toBe(1);
  });

  describeWithRedis('two instances on one Redis', () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    // The number of requests is fixed, so only a slow machine needs this long.
    test('lose none of 100 conditional writes from six clients', { timeout: 300_000 }, async () => {
      const WRITES = 100;
      const env = { REDIS_URL: redis.url, UPSTREAM_URL: demo.url, ...fixed({ v2: { lockWaitMs: 60_000 } }) };
      const instances = await Promise.all([startConnectedProxy(env), startConnectedProxy(env)]);
      const count = (number: number): string =>
        JSON.stringify([textValue(1, 'URL', `https://example.org/${number}`), adminValue()]);
      demo.put(HANDLE, JSON.parse(count(0)) as unknown[]);
      let writes = 0;
      const addOne = async (at: number): Promise<void> => {
        const { url } = instances[at % 2]!;
        for (;;) {
          const seen = await ask(url, PATH);
          const headers = { ...WRITE_HEADERS, 'If-Match': seen.headers.etag ?? '' };
          const { status } = await ask(url, PATH, {
            method: 'PUT',
            headers,
            body: count(numberIn(seen) + 1),
          });
          writes++;
          if (status === 200) return;
          expect([412, 503]).toContain(status);
        }
      };
      await mapLimited(
        Array.from({ length: WRITES }, (_, at) => at),
        6,
        addOne,
      );
      process.stdout.write(`${WRITES} writes carried out, ${writes - WRITES} refused\n`);
      for (const { url } of instances) expect(numberIn(await ask(url, PATH))).toBe(WRITES);
      expect(numberIn(await ask(demo.url, PATH))).toBe(WRITES);
    });
  });
});
