// Environment variables take precedence over the file, and the file over the defaults.
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/app/config.js';
import { configFrom } from '../support/load-config.js';

describe('configuration loading', () => {
  it('returns the defaults when nothing is set', () => {
    const config = configFrom({});
    expect(config.server).toMatchObject({ host: '0.0.0.0', port: 8080, shutdownTimeoutMs: 10_000 });
    expect(config.upstream.url).toBeUndefined();
    expect(config.cache.maxBytes).toBe(268_435_456);
  });

  it('combines values from the file with defaults', () => {
    const config = configFrom({ yaml: 'cache:\n  found:\n    maxTtl: 5m\n' });
    expect(config.cache.found).toEqual({ minTtlMs: 0, maxTtlMs: 300_000, maxEntries: 1_000_000 });
  });

  it('gives a variable precedence over the file', () => {
    const config = configFrom({ yaml: 'server: { port: 1, host: a }', env: { PORT: '2' } });
    expect(config.server).toMatchObject({ port: 2, host: 'a' });
  });

  it('parses numbers and booleans from environment variables', () => {
    const config = configFrom({
      env: { UPSTREAM_CONCURRENCY: '7', UPSTREAM_CASE_SENSITIVE: 'true', CACHE_NOT_FOUND_TTL: '0s' },
    });
    expect(config.upstream).toMatchObject({ concurrency: 7, caseSensitive: true });
    expect(config.cache.notFound.ttlMs).toBe(0);
  });

  it('ignores an empty variable', () => {
    expect(configFrom({ env: { PORT: '', UPSTREAM_URL: ' ', CONFIG: '' } })).toEqual(configFrom({}));
  });

  it('ignores a key without a value in a list of mappings', () => {
    const { upstreams } = configFrom({
      yaml: 'upstreams:\n  - prefixes: ["21.T1"]\n    url: http://a.example.org\n    caFile:\n',
    });
    expect(upstreams).toMatchObject([{ prefixes: ['21.T1'], url: 'http://a.example.org' }]);
  });

  it('ignores a key without a value, a comment-only section and an empty file', () => {
    expect(configFrom({ yaml: 'server:\n  port:\ncache:\n  # maxBytes: 1MiB\n' })).toEqual(configFrom({}));
    expect(configFrom({ yaml: '' })).toEqual(configFrom({}));
  });

  it('ignores unknown variables', () => {
    expect(configFrom({ env: { PATH: '/bin', CACHE_SIZE: '1', SERVER_PORT: 'x' } })).toEqual(configFrom({}));
  });

  it('reads no file when CONFIG is unset', () => {
    const readFile = () => {
      throw new Error('must not be called');
    };
    expect(() => loadConfig({ env: {}, readFile })).not.toThrow();
  });

  it('normalises the upstream to an origin, and a fingerprint to the node:tls format', () => {
    const { upstream } = configFrom({
      env: { UPSTREAM_URL: 'HTTPS://Handle.Example.org:443/', UPSTREAM_FINGERPRINT: 'ab'.repeat(32) },
    });
    expect(upstream.url).toBe('https://handle.example.org');
    expect(upstream.fingerprint).toBe(Array(32).fill('AB').join(':'));
  });
});
