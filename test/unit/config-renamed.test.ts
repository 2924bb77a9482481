// The proxy rejects removed and renamed configuration keys at startup, and names their values or replacements.
import { describe, expect, it } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { variableOf } from '../../src/config/keys.js';
import { configFrom, problemsFrom } from '../support/load-config.js';

const RENAMED = [
  ['traffic.unknown.perMinute', 'traffic.enumeration.perMinute'],
  ['redis.writesWithout', 'redis.disconnectedWrites'],
  ['redis.lostMaxAge', 'redis.disconnectedMaxAge'],
] as const;

/** Renamed names in YAML: a section, a key, and a key inside `upstreams`. */
const IN_FILE = [
  [
    'traffic: { unknown: { perMinute: 1, notFoundShare: 0.9, for: 10m } }',
    'traffic.unknown',
    'traffic.enumeration, with perMinute only: remove notFoundShare (0.9) and for (10 minutes)',
  ],
  [
    'upstreams: [{ prefixes: [21.T1], url: http://a.example.org, mirrors: http://b.example.org }]',
    'upstreams.0.mirrors',
    'upstream.secondaries',
  ],
] as const;

/** Keys that have become constants, with a part of the message. */
const CONSTANTS = [
  ['server.headersTimeout', '15 s'],
  ['server.requestTimeout', '60 s'],
  ['server.answerTimeout', '5 minutes'],
  ['server.idleTimeout', '2 minutes'],
  ['http.maxRequestLine', '8 KiB'],
  ['http.bodiesMaxBytes', '64 MiB'],
  ['http.unsentMaxBytes', '256 MiB'],
  ['http.hotPath.enabled', 'true'],
  ['http.hotPath.maxEntries', '200,000'],
  ['http.hotPath.maxBytes', '128 MiB'],
  ['http.gzipMinBytes', '1 KiB'],
  ['http.jsonpWithCredentials', 'false'],
  ['upstream.failoverAfter', '3 s'],
  ['upstream.connections', '128'],
  ['upstream.queueTimeout', '2 s'],
  ['upstream.maxBodySize', '8 MiB'],
  ['upstream.maxRest', '1 minute'],
  ['upstream.minConcurrency', '8'],
  ['upstream.queue', '1,000'],
  ['upstream.referralRoot', 'https://hdl.handle.net'],
  ['upstream.referralsToPrivateNetworks', 'false'],
  ['upstream.referralPorts', '80, 443, 8000 and 2641'],
  ['upstream.breaker.failures', '10'],
  ['upstream.breaker.openFor', '5 s'],
  ['cache.notFound.maxEntries', '100,000'],
  ['cache.refreshAhead.minHits', '3'],
  ['cache.snapshot.every', '5 minutes'],
  ['v2.realm', 'handle'],
  ['v2.search.maxHandles', '2,000'],
  ['v2.search.concurrency', '8'],
  ['v2.lockWait', '10 s'],
  ['v2.admin.index', '100'],
  ['v2.admin.permissions', '011111110011; a client that gives others sends its own HS_ADMIN value'],
  ['redirect.prefixLocations', 'true'],
  ['page.footerUrl', 'none'],
  ['admin.maxEventLoopDelay', '1 s'],
  ['admin.readyWithoutUpstream', 'false'],
  ['traffic.unknown.notFoundShare', '0.9'],
  ['traffic.unknown.for', '10 minutes'],
  ['batch.enabled', 'true'],
  ['native.tunnel', 'true'],
  ['native.tcp.maxConnections', '1,000'],
  ['native.tcp.maxConnectionsPerNetwork', 'that'],
  ['native.tcp.idleTimeout', '15 s'],
  ['native.tcp.requestTimeout', '30 s'],
  ['native.site.description', 'Caching resolver proxy'],
] as const;

/** Returns YAML that sets a key. */
const yamlOf = (key: string): string =>
  key.split('.').reduceRight((inner, name) => `{ ${name}: ${inner} }`, '1');

describe('configuration keys that have become constants', () => {
  it.each(CONSTANTS)('are rejected, with their value: %s (%s)', (key, value) => {
    const remedy = `no longer a key: remove it; the value is ${value}`;
    const variable = variableOf(key);
    expect(configKeys().map((each) => each.key)).not.toContain(key);
    expect(problemsFrom({ env: { [variable]: '1' } })).toEqual([
      expect.stringContaining(`  ${key} (variable ${variable}): ${remedy}`),
    ]);
    expect(problemsFrom({ yaml: yamlOf(key) })).toEqual([
      expect.stringMatching(
        / \(file \/etc\/proxy.yaml\): (?:no longer a key: remove it; the value is |renamed to traffic.enumeration)/,
      ),
    ]);
  });

  it('are in the parsed configuration', () => {
    const { server, http } = configFrom({});
    expect(server).toMatchObject({ headersTimeoutMs: 15_000, requestTimeoutMs: 60_000 });
    expect(http.responseCache).toEqual({ maxEntries: 200_000, maxBytes: 128 * 2 ** 20 });
  });
});

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
