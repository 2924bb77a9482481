// Injection through names, paths or bodies: no input reaches a header or a script, or modifies an object.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS } from '../support/demo-writes.js';
import { startProxy } from '../support/proxy.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/page';
const start = () => startProxy({ UPSTREAM_URL: demo.url, V2_ANONYMOUS_READ: 'true' });

describe('injection', () => {
  test.each([
    'alert(1)//',
    '</script><script>',
    'a\r\nSet-Cookie: a=b',
    '\u2028alert',
    'a;b',
    '__proto__',
    'x'.repeat(999),
  ])('cannot use the JSONP callback %j as code', async (name) => {
    const proxy = await start();
    const answer = await proxy.ask(`/api/handles/${HANDLE}?callback=${encodeURIComponent(name)}`);
    expect(answer.status).toBe(200);
    expect(answer.text).toMatch(/^[\w$\u00a0-\u2027\u202a-\uffff]+\(\{[^]*\}\);?\s*$/);
    expect(answer.headers['content-type']).toMatch(/javascript/);
    expect(answer.headers['set-cookie']).toBeUndefined();
  });

  test.each([
    '%0d%0aSet-Cookie:%20a=b',
    '%0aSet-Cookie:a=b',
    '%00',
    '%E2%80%A8',
    '%22%3E%3Cscript%3Ealert(1)%3C/script%3E',
  ])('cannot alter headers or pages through a handle that contains %s', async (bytes) => {
    const proxy = await start();
    for (const start of ['/api/handles/21.T1/', '/21.T1/', '/api/v2/handles/21.T1/']) {
      const answer = await proxy.ask(`${start}x${bytes}`, { headers: { Accept: 'text/html' } });
      expect(answer.headers['set-cookie']).toBeUndefined();
      const isPage = String(answer.headers['content-type']).startsWith('text/html');
      expect(isPage && answer.text.includes('<script>alert')).toBe(false);
    }
    const appended = await proxy.ask(`/${HANDLE}?urlappend=${bytes}`);
    expect(appended.headers['set-cookie']).toBeUndefined();
    expect(String(appended.headers['location'])).not.toMatch(/[\r\n<>"]/);
  });

  test.each([`/${HANDLE}?noredirect`, '/', '/21.T1/nobody', '/api/%zz', '/%zz'])(
    'is mitigated by safe headers on the response to %s',
    async (target) => {
      const proxy = await start();
      const { headers } = await proxy.ask(target, { headers: { Accept: 'text/html' } });
      expect(headers).not.toHaveProperty('x-powered-by');
      expect(headers).not.toHaveProperty('server');
      if (!String(headers['content-type']).startsWith('text/html')) return;
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['referrer-policy']).toBe('no-referrer');
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
    },
  );

  test('cannot pollute prototypes through names like __proto__ in a body', async () => {
    const proxy = await start();
    const poison = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const value = `{"index":1,"type":"__proto__","data":{"format":"string","value":"x","__proto__":{"polluted":1}}}`;
    const bodies = [poison, `[${poison}]`, `[${value}]`, `{"values":[${value}],"__proto__":{"polluted":1}}`];
    for (const body of bodies) {
      for (const target of [
        '/api/v2/handles/21.T11998/proto',
        '/api/handles/21.T11998/proto',
        '/api/sessions',
      ]) {
        for (const method of ['PUT', 'POST']) {
          const answer = await ask(proxy.url, target, { method, headers: WRITE_HEADERS, body });
          expect(answer.status, `${method} ${target} ${body}`).toBeLessThan(500);
        }
      }
    }
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect((await proxy.ask(`/api/handles/21.T11998/${name}`)).status).toBe(404);
      expect((await proxy.ask(`/api/handles/${HANDLE}?${name}=1&type=${name}`)).status).toBe(200);
    }
    expect({}).not.toHaveProperty('polluted');
  });
});
