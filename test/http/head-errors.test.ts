// Errors of HEAD have the headers of GET (RFC 9110 §9.3.2), also where the text names the method.
import '../support/real-sockets.js';
import { expect, describe, test } from 'vitest';
import { type Asked, ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';

/** Returns the status and the headers that do not differ between two GETs. */
function headOf({ status, headers }: Asked): object {
  const differing = ['age', 'cache-status', 'date', 'x-request-id'];
  const isSame = ([name]: [string, unknown]): boolean => !differing.includes(name);
  return {
    status,
    names: Object.keys(headers),
    ...Object.fromEntries(Object.entries(headers).filter(isSame)),
  };
}

/** Compares the responses to GET, which is an error, and HEAD. */
async function expectSameHead(url: string, target: string, headers = {}): Promise<void> {
  const get = await ask(url, target, { headers });
  const head = await ask(url, target, { method: 'HEAD', headers });
  expect.soft(get.status, target).toBeGreaterThanOrEqual(400);
  expect.soft(headOf(head), target).toEqual(headOf(get));
  expect.soft(head.text, target).toBe('');
}

describe('the response to HEAD', () => {
  test('has the headers of GET for every error', async () => {
    const demo = await startDemoServer();
    const { url } = await startOperated(demo.url);
    const targets = [
      '/api',
      '/api/foo',
      '/api/foo?callback=f',
      '/api/foo?pretty',
      '/api/resolve',
      '/api/resolve/x',
      '/api/sessions',
      '/api/sessions/other',
      '/api/prefixes/21.T1',
      '/api/site//x',
      '/api/handles/21.T11998/%zz',
      '/api/handles/21.T11998/none',
      '/api/handles/99.T1/none',
      `/api/handles/21.T11998/${'x'.repeat(2100)}`,
      '/api/handles/21.T11998/demo?index=x',
      '/api/handles/?prefix=99.T1',
      '/api/v2',
      '/api/v2/foo',
      '/api/v2/handles',
      '/api/v2/handles/21.T11998',
      '/api/v2/handles/21.T11998/none',
      '/21.T11998/none',
      '/21.T11998/%zz',
      '/foo',
      '/status/none',
      '/openapi/none',
    ];
    for (const target of targets) await expectSameHead(url, target);
    for (const target of targets) await expectSameHead(url, target, { Accept: 'text/html' });
  });

  test('has the headers of GET for every error of the admin listener', async () => {
    const { place } = await startOperated((await startDemoServer()).url);
    for (const target of ['/nothing', '/purge', '/import', '/cache', '/cache?handle=', '/status/none'])
      await expectSameHead(place.ADMIN_URL, target);
  });
});
