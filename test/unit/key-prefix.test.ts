// Default Redis key prefix, unique per Handle server and database.
import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { upstreamServers } from '../../src/config/upstream-servers.js';
import { defaultKeyPrefix } from '../../src/cache/redis/namespace.js';

function prefixFor(env: Record<string, string>, machine?: string): string {
  const config = loadConfig({ env, readFile: () => '' });
  return defaultKeyPrefix(upstreamServers(config), config.redis, machine);
}

const REDIS_URL = 'redis://user:secret@redis:6379';
const HERE = { UPSTREAM_URL: 'https://hdl.example.org', REDIS_URL };

describe('default Redis key prefix', () => {
  test.each([
    ['the name in capitals', { UPSTREAM_URL: 'HTTPS://HDL.Example.ORG' }],
    ['the port that https has anyway', { UPSTREAM_URL: 'https://hdl.example.org:443/' }],
    ['the first database by its number', { REDIS_URL: `${REDIS_URL}/0` }],
    ['another Redis, another login', { REDIS_URL: 'rediss://elsewhere' }],
    ['another machine', {}],
  ])('is the same for %s', (_what, env) => {
    expect(prefixFor({ ...HERE, ...env }, 'another')).toBe(prefixFor(HERE, 'one'));
  });

  test.each([
    ['another scheme', { UPSTREAM_URL: 'http://hdl.example.org' }],
    ['another host', { UPSTREAM_URL: 'https://hdl2.example.org' }],
    ['another port', { UPSTREAM_URL: 'https://hdl.example.org:8000' }],
    ['another database', { REDIS_URL: `${REDIS_URL}/1` }],
  ])('differs for %s', (_what, env) => {
    expect(prefixFor({ ...HERE, ...env })).not.toBe(prefixFor(HERE));
  });

  test.each(['http://localhost:8000', 'http://127.0.0.1:8000', 'http://[::1]:8000'])(
    'differs per machine for the local address %s',
    (url) => {
      const env = { UPSTREAM_URL: url, REDIS_URL };
      expect(prefixFor(env, 'one')).not.toBe(prefixFor(env, 'other'));
      expect(prefixFor(env)).toBe(prefixFor(env, hostname()));
    },
  );

  test('starts with hrp: and excludes braces, which Redis Cluster interprets', () => {
    expect(prefixFor(HERE)).toMatch(/^hrp:[\w-]{12}:0:$/);
    expect(prefixFor({ ...HERE, REDIS_URL: `${REDIS_URL}/7` })).toMatch(/:7:$/);
  });
});
