// Constants of the configuration that follow a key.
import { describe, expect, it } from 'vitest';
import { upstreamServers } from '../../src/config/upstream-servers.js';
import { createMemoryBudget } from '../../src/http/request-body.js';
import { createHttpServer } from '../../src/server/http-server.js';
import { testContext } from '../support/context.js';
import { configFrom } from '../support/load-config.js';

const UPSTREAM_URL = 'http://a.example.org';

describe('constants of the configuration', () => {
  it.each([
    ['8', 128],
    ['64', 128],
    ['500', 1000],
  ])('allow, with upstream.concurrency %s, %s connections', (UPSTREAM_CONCURRENCY, expected) => {
    const one = configFrom({ env: { UPSTREAM_URL, UPSTREAM_CONCURRENCY } });
    const listed = configFrom({
      env: { UPSTREAM_CONCURRENCY, UPSTREAMS: JSON.stringify([{ prefixes: '*', url: UPSTREAM_URL }]) },
    });
    for (const config of [one, listed])
      expect(upstreamServers(config).map(({ connections }) => connections)).toEqual([expected]);
  });

  it.each([
    ['30s', 120_000],
    ['10m', 603_000],
  ])(
    'keep, with upstream.writeTimeout %s, an idle connection for %s ms',
    (UPSTREAM_WRITE_TIMEOUT, expected) => {
      const config = configFrom({ env: { UPSTREAM_URL, UPSTREAM_WRITE_TIMEOUT } });
      const connections = { isTrustedProxy: () => false, unsent: createMemoryBudget(1) };
      expect(createHttpServer(() => undefined, config, testContext(), connections).timeout).toBe(expected);
    },
  );
});
