// Configuration keys for the cache: TTLs, memory and shared Redis.
import { readRedisNode, readRedisUrl } from './addresses.js';
import {
  duration,
  fixed,
  list,
  normalised,
  oneOf,
  pemFile,
  prefixPeriods,
  reloadable,
  secret,
  section,
  size,
  text,
  wholeNumber,
} from './fields.js';

const found = section({
  minTtl: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '0s' }).describe(
      'Minimum TTL of a record, even if its values have a shorter TTL; at most `cache.found.maxTtl`. A record with a TTL of 0, or until a date that has passed, is never cached.',
    ),
  ),
  maxTtl: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '1h' }).describe(
      'Maximum TTL of a record, even if its values have a longer TTL.',
    ),
  ),
  // A `Map` of V8 has 2^24 places, which it cannot rearrange for new keys while more than half of them are in use.
  maxEntries: wholeNumber({ min: 1, max: 8_000_000, byDefault: 1_000_000 }).describe(
    'Maximum records in memory, at most 8,000,000.',
  ),
});

const notFound = section({
  ttl: reloadable(
    duration({ min: '0s', max: '30d', byDefault: '30s' }).describe(
      'TTL of "not found" and of records without public values; `0s` disables negative caching.',
    ),
  ),
  // A flood of unknown names keeps 100,000 of them, and evicts no record.
  maxEntries: fixed(100_000),
});

/** Keys of the core; plugins add others. */
export const cache = {
  maxBytes: size({ min: '1KiB', max: '1024GiB', byDefault: '256MiB' }).describe(
    'Maximum bytes of records in memory.',
  ),
  found,
  notFound,
  staleIfError: reloadable(
    prefixPeriods('24h').describe(
      'Maximum time past its TTL in which a record is served stale when the upstream fails (RFC 8767): a duration, `forever`, or a mapping of prefixes with a default, such as `{default: 24h, 21.T1: forever}`.',
    ),
  ),
  // Hits after which a record is refreshed before its TTL ends; fewer may come from a single client.
  refreshAhead: fixed({ minHits: 3 }),
};

const NODE = 'host:port or redis(s):// addresses';

export const redis = section({
  url: normalised({
    allowed: 'redis:// or rediss://, with at most user, password (a % as %25), host, port and /database',
    read: readRedisUrl,
  })
    .optional()
    .describe(
      'Address of the shared Redis, such as `redis://user:password@redis:6379/0`, with `rediss://` for TLS; without it entries are cached in memory only.',
    ),
  caFile: pemFile.describe("PEM file of the certificate authority that signed Redis's certificate."),
  // Nodes can contain a password anywhere.
  sentinels: secret(
    list({ allowed: NODE, read: readRedisNode })
      .optional()
      .describe(
        'Sentinels of the master, such as `s1:26379,s2:26379`, separated by commas; user, password, database and TLS of the master as in `redis.url`.',
      ),
  ),
  sentinelName: text({ allowed: '1 to 64 printable ASCII characters', pattern: /^[\x21-\x7e]{1,64}$/ })
    .prefault('mymaster')
    .describe('Name of the master at the Sentinels.'),
  cluster: secret(
    list({ allowed: NODE, read: readRedisNode })
      .optional()
      .describe(
        'Nodes of a Redis Cluster, such as `redis://user:password@n1:6379,n2:6379`, separated by commas; user, password and TLS as in the first.',
      ),
  ),
  keyPrefix: text({ allowed: '1 to 64 printable ASCII characters', pattern: /^[\x21-\x7e]{1,64}$/ })
    .optional()
    .describe(
      'Prefix of every Redis key and channel; instances with the same prefix, `upstream.url` and `upstream.caseSensitive` share a cache. By default it is derived from `upstream.url`, `upstream.caseSensitive` and the database number.',
    ),
  commandTimeout: duration({ min: '1ms', max: '10s', byDefault: '50ms' }).describe(
    'Timeout for one Redis command, which then counts as a miss.',
  ),
  // Maximum time without a reply of Redis while a conditional write or an ePIC v2 write acquires its lock.
  lockWaitMs: fixed(5000),
  disconnectedWrites: oneOf(['wait', 'reject'], 'wait').describe(
    'Response to writes while Redis is configured but unreachable: `wait` acknowledges them after at most 10 s, when other instances without Redis no longer use their caches, or responds with 503 if the connection was lost three more times meanwhile; `reject` responds with 503.',
  ),
  disconnectedMaxAge: duration({ min: '0s', max: '1h', byDefault: '5s' }).describe(
    "Maximum age of a response from memory while Redis is unreachable, because other instances' invalidations do not arrive.",
  ),
});
