import { describe, expect, test } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { planReload } from '../../src/app/serve.js';
import { configFrom } from '../support/load-config.js';

const plan = (yaml: string, before = '{}') => planReload(configFrom({ yaml: before }), configFrom({ yaml }));

describe('reload plan', () => {
  test('is empty when the same values are spelled differently', () => {
    const before = 'http: { clientMaxAge: 1m, trustedProxies: "loopback, 10.0.0.0/8" }';
    const again = 'http: { trustedProxies: "loopback,10.0.0.0/8", clientMaxAge: 60s }\ncache: {}';
    expect(plan(again, before)).toMatchObject({ changed: [], needRestart: [] });
  });

  test('applies reloadable keys and preserves the values of the others', () => {
    const { config, changed, needRestart } = plan(
      'cache: { found: { maxTtl: 2h, maxEntries: 5 } }\nserver: { port: 1 }\npage: { title: Example }',
    );
    expect(changed).toEqual(['cache.found.maxTtl', 'page.title']);
    expect(needRestart).toEqual(['server.port', 'cache.found.maxEntries']);
    const { cache, server, page } = config;
    expect({ cache, port: server.port, title: page.title }).toMatchObject({
      cache: { found: { maxTtlMs: 7_200_000, maxEntries: 1_000_000 } },
      port: 8080,
      title: 'Example',
    });
  });

  test('resets a removed key to its default', () => {
    const { config, changed } = plan('{}', 'redirect: { allowedHosts: example.org }');
    expect(changed).toEqual(['redirect.allowedHosts']);
    expect(config.redirect.allowedHosts).toBeUndefined();
  });

  describe('startup-only key', () => {
    test.each(['server.', 'upstream.', 'redis.', 'admin.', 'tracing.', 'http.maxBodySize'])(
      '%s… requires a restart',
      (begin) => {
        const keys = configKeys().filter(({ key }) => key.startsWith(begin));
        expect(keys.length).toBeGreaterThan(0);
        expect(keys.filter(({ isReloadable }) => isReloadable)).toEqual([]);
      },
    );
  });
});
