// Invalid requests are rejected before any upstream request.
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { useNock } from '../support/nock.js';
import { startProxy, useProxy } from '../support/proxy.js';
import { type V2Question, askV2, read } from '../support/v2.js';
import { NAME, reply, scriptUpstream, sends } from '../support/v2-upstream.js';
import { URL_INPUT } from '../support/v2-record.js';

useNock();

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

const shared = useProxy();

async function rejected(path: string, question: V2Question = {}, env?: Record<string, string>) {
  const { sent } = scriptUpstream();
  const { url } = env === undefined ? shared : await startProxy(env);
  const answer = await askV2(url)(path, question);
  expect(sent).toEqual([]);
  return answer;
}

describe('ePIC v2 login', () => {
  test.each([
    ['none', null],
    ['Bearer', 'Bearer abc'],
    ['Handle', 'Handle sessionId="x"'],
    ['no colon', basic('nobody')],
    ['invalid base64', 'Basic ???'],
    ['an identity with a raw colon', basic('300:21.T11998/USER01:password')],
    ['an unknown name', basic('bob:password')],
  ])('is rejected with 401 and a challenge for every path and method: %s', async (_what, as) => {
    for (const [method, path] of [
      ['GET', `/${NAME}`],
      ['PUT', '/21.T11998'],
      ['POST', `/${NAME}`],
      ['GET', '/../nowhere'],
    ] as const) {
      const answer = await rejected(path, { method, as });
      expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Basic realm="handle"']);
      expect(read(answer)).toMatchObject({ status: 401, code: 'V2_LOGIN_NEEDED' });
    }
  });

  test.each([
    ['300%3A21.T11998%2FUSER01:pass:word%41', '300%3A21.T11998%2FUSER01:pass:word%41'],
    ['alice:p:ä', '300%3A21.T11998%2FUSER01:p:ä'],
  ])('is sent upstream: %s as %s', async (given, upstream) => {
    const { sent } = scriptUpstream(reply.missing);
    const { url } = await startProxy({ V2_IDENTITIES: 'bob=1:21.T1/B,alice=300:21.T11998/USER01' });
    await askV2(url)(`/${NAME}`, { as: basic(given) });
    expect(sent).toEqual([sends('GET', `/${NAME}`, basic(upstream))]);
  });
});

describe('ePIC v2 path validation', () => {
  test.each([
    ['GET', '/%zz/x', 400],
    ['PUT', '/21.T11998/%00', 400],
    ['GET', `/21.T11998/${'x'.repeat(2048)}`, 400],
  ])('rejects %s %s with %i', async (method, path, status) => {
    expect((await rejected(path, { method })).status).toBe(status);
  });

  test.each(['', '/', '/handlesx', '/generators'])(
    'returns 404 as problem JSON for /api/v2%s',
    async (path) => {
      const proxy = await startProxy();
      const headers = { Authorization: basic('300%3A21.T11998/USER01:password') };
      const answer = await proxy.ask(`/api/v2${path}`, { headers });
      expect([answer.status, answer.headers['content-type']]).toEqual([404, 'application/problem+json']);
      expect(read(answer)).toMatchObject({ code: 'UNKNOWN_ENDPOINT', responseCode: 4 });
    },
  );
});

describe('ePIC v2 interface', () => {
  test('returns a record interface 404 when v2.enabled is false', async () => {
    const proxy = await startProxy({ V2_ENABLED: 'false' });
    const answer = await proxy.ask(`/api/v2/handles/${NAME}`);
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      404,
      expect.objectContaining({ responseCode: 4 }),
    ]);
  });
});

describe('ePIC v2 method check', () => {
  test.each([
    ['PUT', '/21.T11998', 'GET, HEAD, POST, OPTIONS'],
    ['PUT', '/21.T11998/', 'GET, HEAD, POST, OPTIONS'],
    ['DELETE', '/21.T11998/', 'GET, HEAD, POST, OPTIONS'],
    ['POST', `/${NAME}`, 'GET, HEAD, PUT, DELETE, OPTIONS'],
    ['POST', `/${NAME}/`, 'GET, HEAD, PUT, DELETE, OPTIONS'],
    ['POST', '/', 'GET, HEAD, OPTIONS'],
    ['DELETE', '', 'GET, HEAD, OPTIONS'],
  ])('rejects %s %s with 405 and Allow: %s', async (method, path, allow) => {
    const answer = await rejected(path, { method, headers: { 'Content-Type': 'text/plain' } });
    expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
  });
});

describe('ePIC v2 request rejected by every interface', () => {
  test.each([
    [`/${NAME}`, 'GET, HEAD, PUT, DELETE, OPTIONS'],
    ['/21.T11998/', 'GET, HEAD, POST, OPTIONS'],
  ])('returns 405 with the allowed methods for TRACE %s', async (path, allow) => {
    const answer = await rejected(path, { method: 'TRACE' });
    expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
  });

  test.each([
    ['TRACE', `/${NAME}`, 405],
    ['PATCH', `/${NAME}`, 501],
    ['GET', `/21.T11998/${'x'.repeat(9000)}`, 414],
  ])('returns problem JSON for a rejected %s', async (method, path, status) => {
    const answer = await rejected(path, { method });
    expect([answer.status, answer.headers['content-type']]).toEqual([status, 'application/problem+json']);
  });
});

describe('ePIC v2 request body', () => {
  const put = { method: 'PUT', body: [URL_INPUT] };

  test.each([
    ['no Content-Type', {}, 415],
    ['text', { 'Content-Type': 'text/plain' }, 415],
    ['form data', { 'Content-Type': 'application/x-www-form-urlencoded' }, 415],
    ['a different charset', { 'Content-Type': 'application/json; charset=iso-8859-1' }, 415],
    ['an unknown encoding', { 'Content-Type': 'application/json', 'Content-Encoding': 'what' }, 415],
  ])('is rejected for %s with status %i', async (_what, headers, status) => {
    const { sent } = scriptUpstream();
    const proxy = await startProxy();
    const Authorization = basic('300%3A21.T11998/USER01:password');
    for (const [method, path] of [
      ['PUT', NAME],
      ['POST', '21.T11998'],
    ] as const) {
      const question = { method, headers: { ...headers, Authorization }, body: 'not JSON' };
      expect((await proxy.ask(`/api/v2/handles/${path}`, question)).status).toBe(status);
    }
    expect(sent).toEqual([]);
  });

  test.each(['application/json', 'APPLICATION/JSON; charset=UTF-8', 'application/x-json'])(
    'is accepted as %s',
    async (type) => {
      scriptUpstream(reply.missing, reply.created, reply.missing);
      const { url } = await startProxy();
      const answer = await askV2(url)(`/${NAME}`, { ...put, headers: { 'Content-Type': type } });
      expect(answer.status).toBe(201);
    },
  );

  test.each([
    '',
    '{',
    '{"type":"URL"}',
    '"x"',
    'null',
    '[{"type":"URL"},',
    '[{"idx":1,"type":"A"},{"idx":"1","type":"B"}]',
    '[{"type":"SIZE","parsed_data":12345678901234567890}]',
    '[{"type":"SIZE","parsed_data":-9007199254740993}]',
    '[{"type":"SIZE","parsed_data":1e400}]',
  ])('is rejected with 400 and a reason: %j', async (body) => {
    const answer = await rejected(`/${NAME}`, { method: 'PUT', body });
    expect(answer.status).toBe(400);
    expect(read(answer)).toMatchObject({ code: 'V2_BAD_BODY', handle: NAME });
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ])('is decompressed from %s up to http.maxBodySize', async (encoding, pack) => {
    scriptUpstream(reply.missing, reply.created, reply.missing);
    const proxy = await startProxy({ HTTP_MAX_BODY_SIZE: '2KiB' });
    const Authorization = basic('300%3A21.T11998/USER01:password');
    const headers = { 'Content-Type': 'application/json', 'Content-Encoding': encoding, Authorization };
    const send = async (body: Buffer) =>
      (await proxy.ask(`/api/v2/handles/${NAME}`, { method: 'PUT', headers, body })).status;
    expect(await send(pack(JSON.stringify([URL_INPUT])))).toBe(201);
    expect(await send(pack(' '.repeat(100_000)))).toBe(413);
    expect(await send(Buffer.from('[]'))).toBe(400);
  });

  test('is rejected with 400 when it is not UTF-8', async () => {
    const { url } = await startProxy();
    const headers = { 'Content-Type': 'application/json', Authorization: basic('300%3A21.T11998/USER01:p') };
    const body = Buffer.from([0x5b, 0x22, 0xff, 0x22, 0x5d]);
    expect((await ask(url, `/api/v2/handles/${NAME}`, { method: 'PUT', headers, body })).status).toBe(400);
  });

  test('is rejected with 413 when longer than http.maxBodySize', async () => {
    const answer = await rejected(
      `/${NAME}`,
      { ...put, body: 'x'.repeat(2000) },
      { HTTP_MAX_BODY_SIZE: '1KiB' },
    );
    expect([answer.status, answer.headers.connection]).toEqual([413, 'close']);
  });
});
