// With the browser's cached login, any page could load private values through a JSONP script.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';

useNock();

const Authorization = 'Basic MzAwJTNBMjEuVDExOTk4L1VTRVIwMTpwYXNzd29yZA==';
const secret = recordOf([urlValue('https://example.org/secret')]);
const callback = 'callback=steal';

const TARGETS = [
  `${PATH}?publicOnly=false&${callback}`,
  `${PATH}?${callback}`,
  `${PATH}?c%61llback=steal`,
  `${PATH}?callback`,
  `/API/handles/${HANDLE}?${callback}`,
  `${PATH}?index=x&${callback}`,
  `/api/handles?prefix=21.T11998&${callback}`,
  `/api/handles?handle=${HANDLE}&${callback}`,
  `/api/handles?${callback}`,
  `/api/sessions/this?${callback}`,
  `/api/site?${callback}`,
  `/api/nothing?${callback}`,
  `/${HANDLE}?noredirect&${callback}`,
  `/${HANDLE}?action=api&${callback}`,
];

describe('JSONP with a login', () => {
  describe.each(['Basic eDp5', 'Handle sessionId="1x"', ''])('Authorization "%s"', (login) => {
    test.each(TARGETS)('causes a JSON 403 for GET %s, without an upstream request', async (target) => {
      const upstream = mockUpstream(secret);
      const proxy = await startProxy();
      const headers = { Authorization: login, Accept: 'application/json' };
      const { status, text, headers: got } = await proxy.ask(target, { headers });
      expect(status).toBe(403);
      expect(JSON.parse(text)).toMatchObject({ code: 'JSONP_WITH_LOGIN', responseCode: 400 });
      expect(got['content-type']).not.toContain('javascript');
      expect(upstream.asked).toBe(0);
      expect((await proxy.ask(target, { headers, method: 'HEAD' })).status).toBe(403);
    });
  });

  test('excludes a login alone and a callback alone, which are accepted', async () => {
    const upstream = mockUpstream(secret);
    const proxy = await startProxy();
    expect((await proxy.ask(`${PATH}?${callback}`)).text).toMatch(/^steal\(.*\);$/s);
    expect((await proxy.ask(PATH, { headers: { Authorization } })).status).toBe(200);
    expect(upstream.asked).toBe(2);
  });
});
