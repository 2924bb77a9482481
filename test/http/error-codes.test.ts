// The request log and every error response format contain the error code, except Handle server bodies.
import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { type Answer, HANDLE, PATH, mockUpstream } from '../support/upstream.js';

useNock();

async function start() {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  const proxy = await startProxy({}, { logger });
  const loggedCode = () =>
    lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'request')
      .at(-1)?.['code'];
  return { ...proxy, loggedCode };
}

const refusing = { status: 403, body: { responseCode: 400, message: 'no' } };
const elsewhere = { status: 400, body: { responseCode: 301 } };
const missing = { status: 404, body: { responseCode: 100 } };
const JSON_ACCEPT = { Accept: 'application/json' };
const LOGIN = { Authorization: 'Basic eDp5' };

describe('error code', () => {
  describe.each<[code: string, answer: Answer | undefined, path: string, question?: object]>([
    ['UPSTREAM_INVALID_RESPONSE', { status: 200, body: { responseCode: 7, oops: true } }, PATH],
    ['HANDLE_TOO_LONG', undefined, `/api/handles/${'x'.repeat(2049)}`],
    ['BAD_PARAMETER', undefined, `${PATH}?index=x`],
    ['METHOD_NOT_ALLOWED', undefined, '/api/site', { method: 'DELETE' }],
    ['NO_DELETE', undefined, '/api/handles/21.T1/other', { method: 'DELETE', headers: LOGIN }],
    ['BATCH_TOO_LARGE', undefined, `/api/handles?${'handle=21.T1/a&'.repeat(101)}`],
    ['V2_LOGIN_NEEDED', undefined, `/api/v2/handles/${HANDLE}`],
    ['V2_LOGIN_NEEDED', undefined, `/api/v2/handles/21.T1`, { method: 'DELETE' }],
    ['REDIRECT_NOT_FOUND', missing, `/${HANDLE}`, { headers: JSON_ACCEPT }],
    ['REDIRECT_NOT_SERVED', elsewhere, `/${HANDLE}`, { headers: JSON_ACCEPT }],
    ['REDIRECT_REFUSED', refusing, `/${HANDLE}`, { headers: JSON_ACCEPT }],
    ['METHOD_NOT_ALLOWED', undefined, `/${HANDLE}`, { method: 'PUT', headers: JSON_ACCEPT }],
    ['BAD_PATH', undefined, '/%zz', { headers: JSON_ACCEPT }],
  ])('%s', (code, answer, path, question = {}) => {
    test(`appears in the body and the log for ${path.slice(0, 40)}`, async () => {
      mockUpstream(answer);
      const proxy = await start();
      const { text, headers } = await proxy.ask(path, question);
      expect(headers['content-type']).toContain('json');
      expect(JSON.parse(text)).toMatchObject({ code, responseCode: expect.any(Number) as number });
      await expect.poll(proxy.loggedCode).toBe(code);
    });
  });

  test.each<[code: string, answer: Answer | undefined, path: string]>([
    ['REDIRECT_NOT_FOUND', missing, `/${HANDLE}`],
    ['REDIRECT_REFUSED', refusing, `/${HANDLE}`],
    ['BAD_PATH', undefined, '/%zz'],
  ])('appears on the error page: %s', async (code, answer, path) => {
    mockUpstream(answer);
    const proxy = await start();
    expect((await proxy.ask(path)).text).toContain(`<code>${code}</code>`);
    await expect.poll(proxy.loggedCode).toBe(code);
  });

  test('appears in a batch element', async () => {
    mockUpstream({ status: 200, body: { responseCode: 7 } });
    const proxy = await start();
    const { text } = await proxy.ask(`/api/handles?handle=${HANDLE}`);
    expect(JSON.parse(text)).toMatchObject([{ body: { code: 'UPSTREAM_INVALID_RESPONSE' } }]);
  });

  test.each<[method: string, path: string, body: object]>([
    ['GET', '/api/handles', { responseCode: 102, message: 'Empty handle invalid' }],
    ['GET', '/api/foo', { responseCode: 4, message: 'Unknown HTTP API endpoint GET /api/foo' }],
    ['PATCH', PATH, { responseCode: 4, message: 'Unknown method PATCH' }],
  ])('appears only in the log for %s %s, which returns a Handle server body', async (method, path, body) => {
    const proxy = await start();
    expect(JSON.parse((await proxy.ask(path, { method })).text)).toEqual(body);
    await expect.poll(proxy.loggedCode).toMatch(/^(EMPTY|UNKNOWN)_/);
  });
});
