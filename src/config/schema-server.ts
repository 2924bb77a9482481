// Configuration keys for the listeners, HTTP and the log.
import { readNetwork } from './addresses.js';
import {
  duration,
  fixed,
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

const KIB = 1024;
const MIB = 1024 * KIB;

/** Log levels from most to least verbose. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
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
  shutdownDelay: duration({ min: '0s', max: '10m', byDefault: '0s' }).describe(
    'How long the listeners still accept connections after a stop signal, while `/readyz` is 503 already: longer than a load balancer takes to notice, so that it sends no request to a closed port. `server.shutdownTimeout` begins afterwards.',
  ),
  maxConnections: wholeNumber({ min: 0, max: 10_000_000, byDefault: 10_000 }).describe(
    'Maximum open client connections. Beyond it, a new connection replaces a connection that has been idle for a second: first a connection without any request, then the least recently used. If none is idle, the new connection is closed immediately. `0` is unlimited.',
  ),
  maxConnectionsPerNetwork: wholeNumber({ min: 0, max: 10_000_000, byDefault: 0 }).describe(
    'Maximum open client connections per network (IPv4 /24, IPv6 /56) of the public listener, and as many of the native one; further connections are closed immediately. `http.trustedProxies` are exempt. `0` is unlimited.',
  ),
  keepAliveTimeout: duration({ min: '0s', max: '1h', byDefault: '65s' }).describe(
    'Timeout for the next request on an idle keep-alive connection.',
  ),
  // A head is sent in one piece, also over the slowest lines; a body of the maximum size needs 17 KiB/s.
  headersTimeoutMs: fixed(15_000),
  requestTimeoutMs: fixed(60_000),
  // A response of 2 MiB, the largest record by default, reaches a client that reads 7 KiB/s.
  responseTimeoutMs: fixed(5 * 60_000),
  // Longer than any wait for the first byte of a response; the server raises it for a longer `upstream.writeTimeout`.
  idleTimeoutMs: fixed(2 * 60_000),
});

export const http = section({
  clientMaxAge: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '60s' }).describe(
      'Maximum `max-age` of redirects and pages: how long clients may reuse them without a request. Records are always `max-age=0, must-revalidate`, so that clients see their own writes immediately.',
    ),
  ),
  sharedMaxAge: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '0s' }).describe(
      'Maximum `s-maxage` of records and redirects: how long a shared cache (a CDN, Varnish) may reuse them without a request, at most their remaining TTL. Without `fronts.urls` it receives no invalidations: its clients may see the old record for that time. `0s` sends no `s-maxage`.',
    ),
  ),
  maxBodySize: size({ min: '1KiB', max: '256MiB', byDefault: '1MiB' }).describe(
    'Maximum bytes of a request body; larger ones get 413.',
  ),
  trustedProxies: reloadable(
    list({
      allowed: 'IP addresses, networks such as `10.0.0.0/8` (not `/0`), or loopback, linklocal, uniquelocal',
      read: readNetwork,
    })
      .default([])
      .describe(
        'Reverse proxies whose `X-Forwarded-For`, `-Proto` and `-Host` (or `Forwarded`) and `X-Request-Id` are trusted: addresses, networks such as `10.0.0.0/8`, or `loopback`, separated by commas.',
      ),
  ),
  // Below it, compression costs more time than the network does.
  gzipMinBytes: fixed(KIB),
  // The longest handle (2 KiB), with every byte percent-encoded, has 6 KiB.
  maxRequestLineBytes: fixed(8 * KIB),
  // 64 bodies of the default maximum size arrive concurrently. Beyond it, the body that has been arriving longest gets 503.
  maxBufferedBodyBytes: fixed(64 * MIB),
  // Bounds responses above 64 KiB that clients have not read. Beyond it, those that read nothing for longest are closed.
  maxUnsentResponseBytes: fixed(256 * MIB),
  // Prepared HTTP and native responses, of 700 bytes each in addition to their text.
  responseCache: fixed({ maxEntries: 200_000, maxBytes: 128 * MIB }),
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
    text({ allowed: '16 to 256 printable ASCII characters without spaces', pattern: /^[\x21-\x7e]{16,256}$/ })
      .optional()
      .describe(
        'Token that admin requests, except to `/healthz` and `/readyz`, must send as `Authorization: Bearer`; without it only this machine may connect.',
      ),
  ),
  // Above it `/readyz` fails, and `/healthz` for 10 s after a block. The longest step takes some 20 ms.
  maxEventLoopDelayMs: fixed(1000),
});

export const log = section({
  level: reloadable(oneOf(LOG_LEVELS, 'info').describe(`Minimum log level: ${LOG_LEVELS.join(', ')}.`)),
  requests: reloadable(
    oneOf(LOGGED_REQUESTS, 'misses-and-errors').describe(
      'Which requests to log, at level `info`: `all`, `misses-and-errors` (all but hits) or `none`. A log line has about 230 bytes for a hit, and 290 otherwise.',
    ),
  ),
});
