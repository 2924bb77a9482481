// The keys of the Redis that instances share: one server, a master watched by Sentinels, or a cluster.
import { duration, list, oneOf, section, spelled, text } from './fields.js';
import { readRedisNode, readRedisUrl } from './urls.js';

const NODE = 'host:port or redis(s):// addresses';

export const redis = section({
  url: spelled({ allowed: 'a redis:// or rediss:// address', read: readRedisUrl })
    .nullable()
    .default(null)
    .describe(
      'Address of the Redis the instances share, such as `redis://user:password@redis:6379/0`, `rediss://` for TLS; none: memory only.',
    ),
  caFile: text({ allowed: 'the path of a PEM file', pattern: /^[^\0\n]+$/ })
    .nullable()
    .default(null)
    .describe('PEM file with the certificate authority that signed the certificate of Redis.'),
  sentinels: list({ allowed: NODE, read: readRedisNode })
    .nullable()
    .default(null)
    .describe(
      'Sentinels that name the master, such as `s1:26379,s2:26379`, separated by commas; user, password, database and TLS of the master as in `redis.url`.',
    ),
  sentinelName: text({ allowed: '1 to 64 printable ASCII characters', pattern: /^[\x21-\x7e]{1,64}$/ })
    .prefault('mymaster')
    .describe('What the Sentinels call the master.'),
  cluster: list({ allowed: NODE, read: readRedisNode })
    .nullable()
    .default(null)
    .describe(
      'Some nodes of a Redis Cluster, such as `redis://user:password@n1:6379,n2:6379`, separated by commas; user, password and TLS as in the first.',
    ),
  keyPrefix: text({ allowed: '1 to 64 printable ASCII characters', pattern: /^[\x21-\x7e]{1,64}$/ })
    .nullable()
    .default(null)
    .describe(
      'Text before every Redis key and channel; instances with the same one and the same `upstream.url` share a cache; none: made from `upstream.url` and the number of the database.',
    ),
  commandTimeout: duration({ min: '1ms', max: '10s', byDefault: '50ms' }).describe(
    'How long one Redis command may take; after that it counts as a miss.',
  ),
  writesWithout: oneOf(['wait', 'refuse'], 'wait').describe(
    'How writes are answered while Redis is configured but unreachable: `wait` acknowledges them after at most 9 s, when other instances without Redis no longer use their caches; `refuse` answers 503.',
  ),
  lostMaxAge: duration({ min: '0s', max: '1h', byDefault: '5s' }).describe(
    'How old an answer from memory may be while Redis is away, since writes through other instances are not heard of then.',
  ),
});
