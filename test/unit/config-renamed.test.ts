// The proxy rejects renamed configuration keys at startup and names their replacements.
import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { variableOf } from '../../src/config/keys.js';
import { problemsFrom } from '../support/load-config.js';

const RENAMED = [
  ['server.answerTimeout', 'server.responseTimeout'],
  ['http.bodiesMaxBytes', 'http.maxBufferedBodyBytes'],
  ['http.unsentMaxBytes', 'http.maxUnsentResponseBytes'],
  ['http.hotPath.enabled', 'http.responseCache.enabled'],
  ['http.hotPath.maxEntries', 'http.responseCache.maxEntries'],
  ['http.hotPath.maxBytes', 'http.responseCache.maxBytes'],
  ['upstream.maxRest', 'upstream.maxRetryAfter'],
  ['traffic.unknown.notFoundShare', 'traffic.enumeration.notFoundRatio'],
  ['traffic.unknown.perMinute', 'traffic.enumeration.perMinute'],
  ['traffic.unknown.for', 'traffic.enumeration.for'],
  ['redis.writesWithout', 'redis.disconnectedWrites'],
  ['redis.lostMaxAge', 'redis.disconnectedMaxAge'],
] as const;

/** Renamed names in YAML: a section, a key, and a key inside `upstreams`. */
const IN_FILE = [
  ['server: { answerTimeout: 5m }', 'server.answerTimeout', 'server.responseTimeout'],
  ['http: { hotPath: { enabled: false } }', 'http.hotPath', 'http.responseCache'],
  ['traffic: { unknown: { for: 1m } }', 'traffic.unknown', 'traffic.enumeration'],
  [
    'upstreams: [{ prefixes: [21.T1], url: http://a.example.org, maxRest: 5s }]',
    'upstreams.0.maxRest',
    'upstream.maxRetryAfter',
  ],
] as const;

describe('renamed configuration keys', () => {
  it.each(RENAMED)('are rejected as a variable: %s (suggests %s)', (before, now) => {
    const variable = variableOf(before);
    expect(configKeys().map(({ key }) => key)).toContain(now);
    expect(problemsFrom({ env: { [variable]: '1' } })).toEqual([
      expect.stringContaining(`  ${before} (variable ${variable}): renamed to ${now}`),
    ]);
  });

  it.each(IN_FILE)('are rejected in a file, with their new name: %s', (yaml, before, now) => {
    const env = yaml.startsWith('upstreams') ? { UPSTREAM_URL: '' } : {};
    expect(problemsFrom({ yaml, env })).toEqual([`  ${before} (file /etc/proxy.yaml): renamed to ${now}`]);
  });
});
