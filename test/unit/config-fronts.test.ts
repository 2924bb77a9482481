// Settings of caches in front that the proxy rejects at startup.
import { expect, test } from 'vitest';
import { problemsFrom } from '../support/load-config.js';

const UPSTREAM_URL = 'http://handle.test';
const given = (env: Record<string, string>): string[] => problemsFrom({ env: { UPSTREAM_URL, ...env } });

test.each([
  [{ FRONTS_URLS: 'http://varnish:6081' }, 'set it, for example to 1d, because fronts.urls is set'],
  [{ FRONTS_URLS: 'varnish:6081' }, 'addresses without a path, such as http://varnish:6081'],
  [{ FRONTS_URLS: 'http://varnish:6081/purge' }, 'addresses without a path'],
  [{ FRONTS_URLS: 'http://varnish:6081', FRONTS_UNCONFIRMED_WRITES: 'wait' }, 'give one of reject, accept'],
  [
    { FRONTS_URLS: Array(17).fill('http://varnish').join(',') },
    'give at most 16 http:// or https:// addresses',
  ],
])('%j is rejected with its remedy', (env, remedy) => {
  expect(given(env).join('\n')).toContain(remedy);
});

test('caches in front with http.sharedMaxAge are accepted', () => {
  expect(given({ FRONTS_URLS: 'http://one:6081,https://two', HTTP_SHARED_MAX_AGE: '1d' })).toEqual([]);
});
