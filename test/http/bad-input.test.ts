import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { PATH, mockUpstream } from '../support/upstream.js';

useNock();

const H = '/api/handles';

describe('invalid input', () => {
  describe('JSON error without an upstream request', () => {
    test.each([
      ['GET', `${H}/21.T1/x%ZZ`, 400, { responseCode: 4 }],
      ['GET', `${H}/21.T1/x%2`, 400, { responseCode: 4 }],
      ['GET', `${H}/21.T1/x%00`, 400, { responseCode: 4 }],
      ['GET', `${H}/21.T1/${'x'.repeat(2048)}`, 400, { responseCode: 102 }],
      ['GET', `${H}/21.T1/${'x'.repeat(9000)}`, 414, { responseCode: 4 }],
      ['GET', `${PATH}?index=abc`, 400, { responseCode: 4 }],
      ['GET', `${PATH}?index=`, 400, { responseCode: 4 }],
      ['GET', `${PATH}?index=1,2`, 400, { responseCode: 4 }],
      ['GET', `${PATH}?index=99999999999`, 400, { responseCode: 4 }],
      ['GET', `${PATH}?index=1%`, 400, { responseCode: 4 }],
      ['GET', `${PATH}?nothing=%ZZ`, 400, { responseCode: 4 }],
      ['GET', H, 400, { responseCode: 102, message: 'Empty handle invalid' }],
      ['GET', `${H}/`, 400, { responseCode: 102, message: 'Empty handle invalid' }],
      ['GET', '/api', 404, { responseCode: 4, message: 'Unknown HTTP API endpoint GET /api' }],
      ['GET', '/api/foo', 404, { responseCode: 4, message: 'Unknown HTTP API endpoint GET /api/foo' }],
      [
        'GET',
        '/api/handlesx',
        404,
        { responseCode: 4, message: 'Unknown HTTP API endpoint GET /api/handlesx' },
      ],
      ['PATCH', PATH, 501, { responseCode: 4, message: 'Unknown method PATCH' }],
      ['TRACE', PATH, 405, { responseCode: 4 }],
      ['PATCH', '/api/sessions', 405, { responseCode: 4 }],
      ['PROPFIND', '/api/sessions/this', 405, { responseCode: 4 }],
    ])('is returned for %s (case %#)', async (method, target, status, body) => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      const answer = await proxy.ask(target, { method });
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.text)).toMatchObject(body);
      expect(answer.text).not.toContain('"handle":');
      expect(answer.text).not.toMatch(/\bat .*\.(js|ts)\b/);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(upstream.asked).toBe(0);
    });

    test('is reported as JSONP when the request has a callback', async () => {
      mockUpstream();
      const proxy = await startProxy();
      const answer = await proxy.ask(`${H}?callback=cb&pretty`);
      expect(answer.text).toBe('cb({\n  "responseCode": 102,\n  "message": "Empty handle invalid"\n});');
    });
  });

  test('is logged with the path truncated to 2,000 characters', async () => {
    const lines: string[] = [];
    const destination = { write: (text: string): unknown => lines.push(text) };
    const proxy = await startProxy({}, { logger: createLogger({ level: 'info', destination }) });
    const path = `${H}/21.T1/${'x'.repeat(9000)}`;
    expect((await proxy.ask(path)).status).toBe(414);
    await expect.poll(() => lines.find((line) => line.includes('"status":414'))).toBeDefined();
    const line = lines.find((each) => each.includes('"status":414')) ?? '';
    expect((JSON.parse(line) as { path: string }).path).toBe(`${path.slice(0, 2000)}…`);
  });
});
