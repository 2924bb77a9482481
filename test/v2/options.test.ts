import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { askV2 } from '../support/v2.js';
import { NAME, reply, scriptUpstream } from '../support/v2-upstream.js';
import { RECORD, URL_INPUT } from '../support/v2-record.js';

useNock();

const Origin = 'https://app.example.org';

describe('ePIC v2 OPTIONS and CORS', () => {
  test.each([
    ['/', 'GET, HEAD, OPTIONS'],
    ['/21.T11998/', 'GET, HEAD, POST, OPTIONS'],
    [`/${NAME}`, 'GET, HEAD, PUT, DELETE, OPTIONS'],
  ])('list the allowed methods for OPTIONS %s', async (path, allow) => {
    const { url } = await startProxy();
    const answer = await askV2(url)(path, { method: 'OPTIONS', as: null });
    expect([answer.status, answer.headers.allow]).toEqual([204, allow]);
  });

  test('allow conditional writes in a preflight without a login', async () => {
    const { url } = await startProxy();
    const headers = {
      Origin,
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'authorization,content-type,if-match,if-none-match',
    };
    const answer = await askV2(url)(`/${NAME}`, { method: 'OPTIONS', as: null, headers });
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([200, Origin]);
    expect(answer.headers['access-control-allow-headers']).toContain('If-Match');
  });

  test('reject a preflight with unknown headers', async () => {
    const { url } = await startProxy();
    const headers = {
      Origin,
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'x-evil',
    };
    const answer = await askV2(url)(`/${NAME}`, { method: 'OPTIONS', as: null, headers });
    expect(answer.headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('expose the ETag and Location of a write to scripts', async () => {
    scriptUpstream(reply.missing, reply.created, reply.record(RECORD));
    const { url } = await startProxy();
    const answer = await askV2(url)(`/${NAME}`, { method: 'PUT', body: [URL_INPUT], headers: { Origin } });
    const exposed = answer.headers['access-control-expose-headers'] ?? '';
    expect(exposed.split(',')).toEqual(expect.arrayContaining(['ETag', 'Location', 'Content-Length']));
  });
});
