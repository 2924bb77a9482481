// Memory and order of work for request bodies: decompressed bytes count, and the login comes before a large body.
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Asked } from '../support/ask.js';
import { fixed } from '../support/fixed.js';
import { gate } from '../support/gate.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { mockUpstream } from '../support/upstream.js';
import { USER01, askV2, read } from '../support/v2.js';
import { NAME, reply, scriptUpstream, sends } from '../support/v2-upstream.js';

useNock();

const HEADERS = { Authorization: USER01, 'Content-Type': 'application/json' };
const VALUES = '[{"type":"URL","parsed_data":"https://example.org/"}]';
const large = (text: string): string => text.padEnd(20_000, ' ');

const CODINGS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };

/** Sends a compressed body to ePIC v2. */
const sendPacked = (
  proxy: Proxy,
  text: string,
  {
    method = 'PUT',
    path = NAME,
    coding = 'gzip',
  }: { method?: string; path?: string; coding?: keyof typeof CODINGS } = {},
): Promise<Asked> =>
  proxy.ask(`/api/v2/handles/${path}`, {
    method,
    headers: { ...HEADERS, 'Content-Encoding': coding },
    body: CODINGS[coding](text),
  });

describe('large ePIC v2 body', () => {
  test.each([
    ['PUT', NAME, NAME],
    ['POST', '21.T11998', '21.T11998/'],
  ])('is not parsed if the login of the %s is wrong', async (method, path, handle) => {
    const { sent } = scriptUpstream(reply.wrongLogin, reply.wrongLogin);
    const proxy = await startProxy();
    const plain = await askV2(proxy.url)(`/${path}`, { method, body: large('[{},') });
    const packed = await sendPacked(proxy, large('[{},'), { method, path });
    for (const answer of [plain, packed]) {
      expect(answer.status).toBe(401);
      expect(read(answer)).toMatchObject({ code: 'V2_LOGIN_NEEDED' });
    }
    expect(sent).toEqual(Array(2).fill(sends('GET', `/${handle}?publicOnly=true`, USER01)));
  });

  test('is parsed if the login is right', async () => {
    const { missing, created } = reply;
    const { sent } = scriptUpstream(missing, missing, created, missing);
    const v2 = askV2((await startProxy()).url);
    expect((await v2(`/${NAME}`, { method: 'PUT', body: large(VALUES) })).status).toBe(201);
    expect(sent.map(({ method }) => method)).toEqual(['GET', 'GET', 'PUT']);
    expect((await v2(`/${NAME}`, { method: 'PUT', body: large('[{},') })).status).toBe(400);
  });
});

test('a small ePIC v2 body costs no read of the login', async () => {
  const { sent } = scriptUpstream();
  const v2 = askV2((await startProxy()).url);
  expect((await v2(`/${NAME}`, { method: 'PUT', body: '[{},' })).status).toBe(400);
  expect(sent).toEqual([]);
});

describe('decompressed body', () => {
  test.each(['gzip', 'deflate', 'br'] as const)(
    'uses the budget for bodies until its request ends (%s)',
    async (coding) => {
      const { opened, open } = gate();
      const upstream = mockUpstream({ status: 401, body: '', after: opened });
      const proxy = await startProxy({
        HTTP_MAX_BODY_SIZE: '64KiB',
        ...fixed({ http: { maxBufferedBodyBytes: 65_536 } }),
      });
      const text = VALUES.padEnd(60_000, ' ');
      const waiting = sendPacked(proxy, text, { coding });
      await expect.poll(() => upstream.asked).toBe(1);
      const refused = await sendPacked(proxy, text, { coding });
      expect([refused.status, read(refused)]).toEqual([503, expect.objectContaining({ code: 'OVERLOADED' })]);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
      open();
      expect((await waiting).status).toBe(401);
      expect((await sendPacked(proxy, text, { coding })).status).toBe(401);
    },
  );
});
