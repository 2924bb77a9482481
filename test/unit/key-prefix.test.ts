// The default Redis key prefix is unique per Handle server and database.
import { hostname } from 'node:os';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/app/config.js';
import { upstreamServers } from '../../src/config/upstream-servers.js';
import { keyPrefixOf } from '../../src/cache/redis/namespace.js';

function prefixFor(env: Record<string, string>, machine?: string): string {
  const config = loadConfig({ env, readFile: () => '' });
  return keyPrefixOf(upstreamServers(config), config, machine);
}

const REDIS_URL = 'redis://user:secret@redis:6379';
const HERE = { UPSTREAM_URL: 'https://hdl.example.org', REDIS_URL };

describe('default Redis key prefix', () => {
  test.each([
    ['an upper-case host name', { UPSTREAM_URL: 'HTTPS://HDL.Example.ORG' }],
    ['the default HTTPS port', { UPSTREAM_URL: 'https://hdl.example.org:443/' }],
    ['the default database by number', { REDIS_URL: `${REDIS_URL}/0` }],
    ['a different Redis server and login', { REDIS_URL: 'rediss://elsewhere' }],
    ['a different machine', {}],
  ])('is the same for %s', (_what, env) => {
    expect(prefixFor({ ...HERE, ...env }, 'another')).toBe(prefixFor(HERE, 'one'));
  });

  test.each([
    ['a different scheme', { UPSTREAM_URL: 'http://hdl.example.org' }],
    ['a different host', { UPSTREAM_URL: 'https://hdl2.example.org' }],
    ['a different port', { UPSTREAM_URL: 'https://hdl.example.org:8000' }],
    ['a different case-sensitivity of handles', { UPSTREAM_CASE_SENSITIVE: 'true' }],
    ['a different database', { REDIS_URL: `${REDIS_URL}/1` }],
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

  test('stays the same, so that a new version shares the entries of the old one', () => {
    expect(prefixFor(HERE)).toBe('hrp:Rsp_Ac6uSH-F:0:');
  });

  test('starts with hrp: and excludes braces, which Redis Cluster interprets', () => {
    expect(prefixFor(HERE)).toMatch(/^hrp:[\w-]{12}:0:$/);
    expect(prefixFor({ ...HERE, REDIS_URL: `${REDIS_URL}/7` })).toMatch(/:7:$/);
  });
});
