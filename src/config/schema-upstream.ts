// Configuration keys for Handle servers: addresses, prefixes, timeouts, limits and circuit breaker.
import { readFingerprints, readOrigin, readServerAddress } from './addresses.js';
import {
  duration,
  flag,
  list,
  mapping,
  mappings,
  normalised,
  oneOf,
  readPrefixPattern,
  section,
  size,
  text,
  wholeNumber,
} from './fields.js';

/** Value of `upstream.url` that runs the proxy without a Handle server. */
export const NO_SERVER = 'none';

export const ORIGIN = 'an http:// or https:// address with neither path, query nor credentials';

const breaker = section({
  failures: wholeNumber({ min: 1, max: 10_000, byDefault: 10 }).describe(
    "Number of consecutive failures that opens a server's circuit breaker. A failed connection counts each time, any other failure once per handle; 500 and invalid responses need ten times as many handles.",
  ),
  openFor: duration({ min: '10ms', max: '1h', byDefault: '5s' }).describe(
    'Time a circuit breaker stays open: an unreachable server is not contacted, any other server gets requests for at most `failures` handles.',
  ),
});

const trust = {
  caFile: text({ allowed: 'the path of a PEM file', pattern: /^[^\0\n]+$/ })
    .optional()
    .describe(
      'PEM file of the certificate authority that signed the certificates of upstream and secondaries.',
    ),
  fingerprint: normalised({
    allowed: 'a SHA-256 fingerprint: 64 hex digits, colons between the pairs or not; several with commas',
    read: readFingerprints,
  })
    .optional()
    .describe(
      'SHA-256 fingerprints to pin the certificates of upstream and secondaries, in hex with or without colons, separated by commas.',
    ),
};

const times = {
  timeout: duration({ min: '10ms', max: '10m', byDefault: '10s' }).describe(
    'Timeout for an upstream read, including secondaries.',
  ),
  failoverAfter: duration({ min: '10ms', max: '10m', byDefault: '3s' }).describe(
    'Timeout for a read from one server; then the next secondary is tried.',
  ),
  writeTimeout: duration({ min: '10ms', max: '10m', byDefault: '30s' }).describe(
    'Timeout for a write or any other forwarded request.',
  ),
  maxRetryAfter: duration({ min: '0s', max: '1d', byDefault: '1m' }).describe(
    'Maximum time a server is not contacted after it sent 429 or 503 with `Retry-After`; `0s` ignores `Retry-After`.',
  ),
};

const limits = {
  connections: wholeNumber({ min: 1, max: 10_000, byDefault: 128 }).describe(
    'Maximum connections to each server for reads and ePIC v2; forwarded requests have a separate pool of the same size, and a retry opens one more.',
  ),
  concurrency: wholeNumber({ min: 1, max: 10_000, byDefault: 64 }).describe(
    'Maximum concurrent reads per server; fewer while the server is slow, see `upstream.minConcurrency`. The same bound applies to forwarded requests.',
  ),
  minConcurrency: wholeNumber({ min: 1, max: 10_000, byDefault: 8 }).describe(
    'Minimum of the adaptive limit of concurrent reads per server, which falls while the server is slow; `upstream.concurrency` or more turns the adaptation off.',
  ),
  queue: wholeNumber({ min: 0, max: 1_000_000, byDefault: 1000 }).describe(
    'Maximum reads, and maximum forwarded requests, queued for `upstream.concurrency`; beyond it a stale record is served, or 503.',
  ),
  queueTimeout: duration({ min: '1ms', max: '10m', byDefault: '2s' }).describe(
    'Timeout in the queue; then a stale record is served, or 503.',
  ),
  maxRecordSize: size({ min: '1KiB', max: '256MiB', byDefault: '2MiB' }).describe(
    "Maximum bytes of a record's JSON; a larger record is a failure. The native protocol carries 256 KiB. Parsing blocks the event loop for about 6 ms per MiB.",
  ),
  maxBodySize: size({ min: '1KiB', max: '256MiB', byDefault: '8MiB' }).describe(
    'Maximum bytes of any other parsed upstream response, such as a list for ePIC v2; a larger response is a failure.',
  ),
};

/** Keys of `upstream` that each server in `upstreams` may override. */
const perServer = { ...times, ...limits, breaker };

const secondaries = list({ allowed: 'http:// or https:// addresses', read: readOrigin }).default([]);

/** Keys of the section `upstream`, to which plugins add theirs. */
export const upstream = {
  url: normalised({
    allowed: `${ORIGIN}, or none`,
    read: (text) => (text === NO_SERVER ? text : readOrigin(text)),
  })
    .optional()
    .describe(
      'Address of the Handle server, such as `https://handle.example.org:8000`; required, unless `upstreams` is given. With `none` there is no server, and the records of `seed.file` and `cache.snapshot.file` are served.',
    ),
  secondaries: secondaries.describe(
    'Addresses of secondary servers, which have the same records, separated by commas, tried in this order when the Handle server fails; for anonymous reads only.',
  ),
  secondaryMaxTtl: duration({ min: '0s', max: '365d', byDefault: '1m' }).describe(
    'Maximum lag of a secondary: the maximum TTL of its records, and the time after a write in which only the primary is read.',
  ),
  ...trust,
  ...perServer,
  staleAfter: duration({ min: '1ms', max: '10m', byDefault: '1.8s' }).describe(
    'Time a reader waits for the upstream before a stale record is served (RFC 8767); less than `upstream.timeout`.',
  ),
  retryAfter: duration({ min: '0s', max: '1h', byDefault: '5s' }).describe(
    'Backoff after a failure: the handle is not requested again (readers get the stale record or the same error), and the failed server is tried last. Also the time until an uncacheable prefix record or include is requested again; `0s` disables all three.',
  ),
  probeHandle: text({ allowed: 'a handle', pattern: /^[^/]+\/.+$/ })
    .default('0.NA/0.NA')
    .describe(
      'Handle that the probes at startup and by `check-config --probe` read from each server; it need not exist. Behind a gateway that passes only some prefixes, choose one of these.',
    ),
  caseSensitive: flag(false).describe(
    'Whether the upstream distinguishes handles whose suffixes differ only in case.',
  ),
};

const address = normalised({
  allowed: 'an http:// or https:// address without credentials',
  read: readServerAddress,
});

/** The kinds of servers. `dspace` and `template` servers mint their own handles; `none` means no server. */
const KINDS = ['handle-server', 'dspace', 'template', 'none'] as const;

const PREFIXES = 'prefixes such as 21.T11998, 21.T11998.* for those derived from it, or * for all others';

const server = mapping({
  prefixes: list({ allowed: PREFIXES, read: readPrefixPattern }),
  kind: oneOf(KINDS, 'handle-server'),
  url: address.optional(),
  existenceCheck: flag(false),
  readOnly: flag(false),
  secondaries: list({ allowed: 'http:// or https:// addresses', read: readServerAddress }).default([]),
  ...trust,
  ...perServer,
});

export const upstreams = mappings(server).describe(
  'Servers to use instead of `upstream.url`, each with `prefixes` and `url`. Optional members: `kind` (`handle-server`, `dspace`, `template` or `none`) and `existenceCheck` for repositories, see "Repositories"; `readOnly` and `secondaries`; and `caFile`, `fingerprint`, timeouts, limits and `breaker` to override `upstream.*`. The longest matching prefix determines the server.',
);

/** Keys of `upstream` that are defaults for each server in `upstreams`. */
export const INHERITED_KEYS: readonly string[] = Object.keys(perServer);
