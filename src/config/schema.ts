// Every configuration key: what it allows, its default, and what it does in one sentence.
import { z } from 'zod';
import { cache } from './cache.js';
import {
  duration,
  list,
  oneOf,
  reloadable,
  section,
  size,
  spelled,
  text,
  wholeNumber,
  yesOrNo,
} from './fields.js';
import { LOG_LEVELS } from './log-levels.js';
import { isLoopback } from './loopback.js';
import { readProxy } from './proxies.js';
import { redis } from './redis.js';
import { upstream } from './upstream.js';
import { page, redirect } from './redirect.js';
import { tracing } from './tracing.js';
import { readOrigin } from './urls.js';
import { v2 } from './v2.js';

const host = text({ allowed: 'a host name or an IP address', pattern: /^[^\s/@]{1,255}$/ });

const server = section({
  host: host
    .prefault('0.0.0.0')
    .describe('Address the proxy listens on; `0.0.0.0` is every IPv4 address, `::` every address.'),
  port: wholeNumber({ min: 0, max: 65_535, byDefault: 8080 }).describe(
    'TCP port the proxy listens on; `0` takes any free one.',
  ),
  workers: wholeNumber({ min: 0, max: 1024, byDefault: 0 }).describe(
    'Number of processes that share the port; `0` is one for each core of the machine.',
  ),
  shutdownTimeout: duration({ min: '0s', max: '10m', byDefault: '10s' }).describe(
    'How long requests under way may still take after a stop signal before their connections are cut.',
  ),
  maxConnections: wholeNumber({ min: 0, max: 10_000_000, byDefault: 10_000 }).describe(
    'Greatest number of open connections of clients, divided among the workers; further ones are closed at once, and `0` is no limit.',
  ),
  headersTimeout: duration({ min: '100ms', max: '10m', byDefault: '15s' }).describe(
    'How long a client may take to send the head of a request; after that 408.',
  ),
  requestTimeout: duration({ min: '100ms', max: '1h', byDefault: '60s' }).describe(
    'How long a client may take to send a whole request; after that 408.',
  ),
  answerTimeout: duration({ min: '0s', max: '1d', byDefault: '5m' }).describe(
    'How long a client may take to read an answer before its connection is cut; `0s` is no limit.',
  ),
  keepAliveTimeout: duration({ min: '0s', max: '1h', byDefault: '65s' }).describe(
    'How long a connection is kept open for the next request.',
  ),
  idleTimeout: duration({ min: '0s', max: '1d', byDefault: '2m' }).describe(
    'How long nothing at all may be read from or written to a connection under way before it is cut; more than `upstream.writeTimeout` and `upstream.queueTimeout` together, and `0s` is no limit.',
  ),
});

const hotPath = section({
  enabled: yesOrNo(true).describe(
    'Whether plain questions are answered without passing through Express, and answers given before from prepared bytes (`true` or `false`).',
  ),
  maxEntries: wholeNumber({ min: 2, max: 100_000_000, byDefault: 200_000 }).describe(
    'Greatest number of prepared answers in memory.',
  ),
  maxBytes: size({ min: '1KiB', max: '1024GiB', byDefault: '128MiB' }).describe(
    'Memory in bytes that prepared answers may take, beside `cache.maxBytes`.',
  ),
});

const rateLimit = reloadable(
  section({
    perMinute: wholeNumber({ min: 0, max: 100_000_000, byDefault: 0 }).describe(
      'Greatest number of requests in a minute from one client address (IPv6: from one /56 network), counted over all instances on one Redis, and without Redis by each worker for itself; beyond it 429, and `0` is no limit.',
    ),
  }),
);

const http = section({
  clientMaxAge: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '60s' }).describe(
      'Longest time a client or a cache behind us may keep an answer without asking again (`max-age`).',
    ),
  ),
  maxRequestLine: size({ min: '1KiB', max: '1MiB', byDefault: '8KiB' }).describe(
    'Longest request line in bytes; longer ones are answered with 414.',
  ),
  maxBodySize: size({ min: '1KiB', max: '256MiB', byDefault: '1MiB' }).describe(
    'Largest body in bytes a client may send; a larger one is answered with 413.',
  ),
  bodiesMaxBytes: size({ min: '1KiB', max: '1024GiB', byDefault: '64MiB' }).describe(
    'Memory in bytes that bodies to be passed on may take together (at least one of the greatest size has room); beyond it the one that has been on its way longest is refused with 503.',
  ),
  gzipMinBytes: reloadable(
    size({ min: '0B', max: '1GiB', byDefault: '1KiB' }).describe(
      'Smallest answer in bytes that is compressed for clients that accept gzip.',
    ),
  ),
  trustedProxies: reloadable(
    list({
      allowed: 'IP addresses, networks such as `10.0.0.0/8`, or loopback, linklocal, uniquelocal',
      read: readProxy,
    })
      .nullable()
      .default(null)
      .describe(
        'Proxies before this one whose `X-Forwarded-For`, `-Proto`, `-Host` and `-Prefix` are believed: addresses, networks such as `10.0.0.0/8`, or `loopback`, separated by commas.',
      ),
  ),
  rateLimit,
  hotPath,
});

const admin = section({
  host: host
    .prefault('127.0.0.1')
    .describe(
      'Address the admin listener (health, metrics) listens on; another than loopback needs `admin.token`.',
    ),
  port: wholeNumber({ min: 0, max: 65_535, byDefault: 9090 }).describe(
    'TCP port the admin listener listens on; `0` takes any free one.',
  ),
  token: text({
    allowed: '16 to 256 printable ASCII characters without spaces',
    pattern: /^[\x21-\x7e]{16,256}$/,
  })
    .nullable()
    .default(null)
    .describe(
      'What callers of the admin listener send as `Authorization: Bearer`, `/healthz` and `/readyz` excepted; none: the listener answers this machine only.',
    ),
  maxEventLoopDelay: duration({ min: '0ms', max: '10m', byDefault: '1s' }).describe(
    'Delay of the event loop (99th percentile of a second) from which `/readyz` says no; `0ms`: it never does.',
  ),
});

const log = section({
  level: reloadable(
    oneOf(LOG_LEVELS, 'info').describe(`Least weight a log line must have: ${LOG_LEVELS.join(', ')}.`),
  ),
});

const deletion = reloadable(
  section({
    handles: yesOrNo(false).describe('Whether whole handles may be deleted (`true` or `false`).'),
    values: yesOrNo(false).describe('Whether single values of a handle may be deleted (`true` or `false`).'),
    allowedFor: text({
      allowed: 'handles with `*` for any text, separated by commas',
      pattern: /^[^\s,]+(,[^\s,]+)*$/,
    })
      .nullable()
      .default(null)
      .describe(
        'Handles that may be deleted all the same, whole or by value, such as `21.T11998/TEST-*`, separated by commas.',
      ),
  }),
);

const reverseLookup = section({
  url: spelled({
    allowed: 'an http:// or https:// address with neither path, query nor credentials',
    read: readOrigin,
  })
    .nullable()
    .default(null)
    .describe('Address of the reverse look-up service that answers `/hrls/handles`; none: 404.'),
});

/** The whole configuration. Durations become milliseconds, sizes become bytes. */
export const configSchema = z
  .strictObject({
    server,
    http,
    upstream,
    redis,
    cache,
    deletion,
    reverseLookup,
    v2,
    redirect,
    page,
    admin,
    log,
    tracing,
  })
  .check(({ value, issues }) => {
    if (value.upstream.staleAfter >= value.upstream.timeout) {
      issues.push(crossIssue('upstream.staleAfter', 'give less than upstream.timeout'));
    }
    const { idleTimeout, headersTimeout, requestTimeout } = value.server;
    if (headersTimeout > requestTimeout) {
      issues.push(crossIssue('server.headersTimeout', 'give at most server.requestTimeout'));
    }
    if (idleTimeout !== 0 && idleTimeout <= value.upstream.writeTimeout + value.upstream.queueTimeout) {
      issues.push(
        crossIssue(
          'server.idleTimeout',
          'give more than upstream.writeTimeout and queueTimeout together, or 0s',
        ),
      );
    }
    if (value.redis.cluster !== null && value.redis.sentinels !== null) {
      issues.push(crossIssue('redis.sentinels', 'give this or redis.cluster, not both'));
    }
    if (value.admin.token === null && !isLoopback(value.admin.host)) {
      issues.push(crossIssue('admin.host', 'set admin.token, or give a loopback address such as 127.0.0.1'));
    }
    if (value.cache.found.minTtl > value.cache.found.maxTtl) {
      issues.push(crossIssue('cache.found.minTtl', 'give at most cache.found.maxTtl'));
    }
  });

const crossIssue = (key: string, message: string) => ({
  code: 'custom' as const,
  path: key.split('.'),
  message,
  input: undefined,
});

export type Config = z.output<typeof configSchema>;
