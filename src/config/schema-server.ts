// Configuration keys for the listeners, HTTP and the log.
import { readNetwork } from './addresses.js';
import {
  duration,
  flag,
  list,
  oneOf,
  reloadable,
  secret,
  section,
  size,
  text,
  wholeNumber,
} from './fields.js';

/** Log levels from most to least verbose. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
/** Values of `log.requests`. */
const LOGGED_REQUESTS = ['all', 'misses-and-errors', 'none'] as const;

const host = text({ allowed: 'a host name or an IP address', pattern: /^[^\s/@]{1,255}$/ });

export const server = section({
  host: host
    .prefault('0.0.0.0')
    .describe('Address of the public listener; `0.0.0.0` is every IPv4 address, `::` every address.'),
  port: wholeNumber({ min: 0, max: 65_535, byDefault: 8080 }).describe(
    'TCP port of the public listener; `0` selects a free port.',
  ),
  reusePort: flag(false).describe(
    'Whether other instances on this machine may listen on the same `server.port` and native ports (SO_REUSEPORT), so that the kernel spreads connections and datagrams over them. Needs Node.js 22.12 or later, and Linux, FreeBSD, Solaris or AIX.',
  ),
  shutdownTimeout: duration({ min: '0s', max: '10m', byDefault: '10s' }).describe(
    'Timeout for requests in flight after a stop signal; then their connections are closed.',
  ),
  maxConnections: wholeNumber({ min: 0, max: 10_000_000, byDefault: 10_000 }).describe(
    'Maximum open client connections. Beyond it, a new connection replaces a connection that has been idle for a second: first a connection without any request, then the least recently used. If none is idle, the new connection is closed immediately. `0` is unlimited.',
  ),
  maxConnectionsPerNetwork: wholeNumber({ min: 0, max: 10_000_000, byDefault: 0 }).describe(
    'Maximum open client connections per network (IPv4 /24, IPv6 /56); further connections are closed immediately. `http.trustedProxies` are exempt. `0` is unlimited.',
  ),
  headersTimeout: duration({ min: '100ms', max: '10m', byDefault: '15s' }).describe(
    'Timeout for receiving the headers of a request; then 408.',
  ),
  requestTimeout: duration({ min: '100ms', max: '1h', byDefault: '60s' }).describe(
    'Timeout for receiving a whole request; then 408.',
  ),
  responseTimeout: duration({ min: '0s', max: '1d', byDefault: '5m' }).describe(
    'Timeout for sending a response; then the connection is closed. `0s` is unlimited.',
  ),
  keepAliveTimeout: duration({ min: '0s', max: '1h', byDefault: '65s' }).describe(
    'Timeout for the next request on an idle keep-alive connection.',
  ),
  idleTimeout: duration({ min: '0s', max: '1d', byDefault: '2m' }).describe(
    'Timeout without any byte read or written during a request; then the connection is closed. Must exceed `upstream.writeTimeout` plus `upstream.queueTimeout`; `0s` is unlimited.',
  ),
});

const responseCache = section({
  enabled: flag(true).describe(
    'Whether to serialise repeated HTTP and native responses once, and reuse them while their entry is current.',
  ),
  maxEntries: wholeNumber({ min: 2, max: 100_000_000, byDefault: 200_000 }).describe(
    'Maximum prepared HTTP and native responses.',
  ),
  maxBytes: size({ min: '1KiB', max: '1024GiB', byDefault: '128MiB' }).describe(
    'Maximum bytes of prepared HTTP and native responses, in addition to `cache.maxBytes`.',
  ),
});

export const http = section({
  clientMaxAge: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '60s' }).describe(
      'Maximum `max-age` of redirects and pages: how long clients may reuse them without a request. Records are always `max-age=0, must-revalidate`, so that clients see their own writes immediately.',
    ),
  ),
  sharedMaxAge: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '0s' }).describe(
      'Maximum `s-maxage` of records and redirects: how long a shared cache (a CDN, Varnish) may reuse them without a request, at most their remaining TTL. It receives no invalidations: its clients may see the old record for that time. `0s` sends no `s-maxage`.',
    ),
  ),
  maxRequestLine: size({ min: '1KiB', max: '1MiB', byDefault: '8KiB' }).describe(
    'Maximum bytes of a request line; longer ones get 414.',
  ),
  maxBodySize: size({ min: '1KiB', max: '256MiB', byDefault: '1MiB' }).describe(
    'Maximum bytes of a request body; larger ones get 413.',
  ),
  maxBufferedBodyBytes: size({ min: '1KiB', max: '1024GiB', byDefault: '64MiB' }).describe(
    'Maximum bytes of all buffered request bodies and native messages, at least one of maximum size; beyond it, the request whose body has been arriving longest gets 503.',
  ),
  maxUnsentResponseBytes: size({ min: '1MiB', max: '1024GiB', byDefault: '256MiB' }).describe(
    'Maximum bytes of all responses above 64 KiB that clients have not read yet; beyond it, the connections that have read nothing for longest are closed. These responses use up to twice as much memory.',
  ),
  jsonpWithCredentials: reloadable(
    flag(false).describe(
      'Whether to accept GET with `callback` and `Authorization`, which otherwise gets 403. If accepted, any website could load the response as a script, with the login that the browser remembers, and read private values.',
    ),
  ),
  gzipMinBytes: reloadable(
    size({ min: '0B', max: '1GiB', byDefault: '1KiB' }).describe(
      'Minimum bytes of a response to compress for clients that accept gzip.',
    ),
  ),
  trustedProxies: reloadable(
    list({
      allowed: 'IP addresses, networks such as `10.0.0.0/8`, or loopback, linklocal, uniquelocal',
      read: readNetwork,
    })
      .default([])
      .describe(
        'Reverse proxies whose `X-Forwarded-For`, `-Proto`, `-Host` and `-Prefix` and `X-Request-Id` are trusted: addresses, networks such as `10.0.0.0/8`, or `loopback`, separated by commas.',
      ),
  ),
  responseCache,
});

export const admin = section({
  host: host
    .prefault('127.0.0.1')
    .describe(
      'Address of the admin listener (health, metrics, purge); any but loopback needs `admin.token`.',
    ),
  port: wholeNumber({ min: 0, max: 65_535, byDefault: 9090 }).describe(
    'TCP port of the admin listener; `0` selects a free port.',
  ),
  token: secret(
    text({
      allowed: '16 to 256 printable ASCII characters without spaces',
      pattern: /^[\x21-\x7e]{16,256}$/,
    })
      .optional()
      .describe(
        'Token that admin requests, except to `/healthz` and `/readyz`, must send as `Authorization: Bearer`; without it only this machine may connect.',
      ),
  ),
  maxEventLoopDelay: duration({ min: '0ms', max: '10m', byDefault: '1s' }).describe(
    'Maximum event loop delay: `/readyz` reports ready up to it (99th percentile over a second), and `/healthz` fails for 10 s after a single longer block of the event loop; `0ms` disables both.',
  ),
  readyWithoutUpstream: flag(false).describe(
    'Whether `/readyz` reports ready before the first response of the upstream or a secondary. Otherwise an instance without records to serve is not ready.',
  ),
});

export const log = section({
  level: reloadable(oneOf(LOG_LEVELS, 'info').describe(`Minimum log level: ${LOG_LEVELS.join(', ')}.`)),
  requests: reloadable(
    oneOf(LOGGED_REQUESTS, 'misses-and-errors').describe(
      'Which requests to log, at level `info`: `all`, `misses-and-errors` (all but hits) or `none`. A log line has about 230 bytes for a hit, and 290 otherwise.',
    ),
  ),
});
