// Configuration keys for Handle servers: addresses, prefixes, timeouts, limits and circuit breaker.
import { readFingerprints, readOrigin, readServerAddress } from './addresses.js';
import {
  duration,
  fixed,
  flag,
  list,
  mapping,
  mappings,
  normalised,
  pemFile,
  readPrefixPattern,
  size,
  text,
  wholeNumber,
} from './fields.js';

/** Value of `upstream.url` that runs the proxy without a Handle server. */
export const NO_SERVER = 'none';

export const ORIGIN = 'an http:// or https:// address with neither path, query nor credentials';

/** Concurrent reads by default; `connections` suffice for it. */
export const DEFAULT_CONCURRENCY = 64;

const trust = {
  caFile: pemFile.describe(
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
  clientCertificateFile: pemFile.describe(
    'PEM file of the certificate that upstream and secondaries demand of their clients, followed by its chain.',
  ),
  clientKeyFile: pemFile.describe(
    'PEM file of the private key of `upstream.clientCertificateFile`, without a passphrase.',
  ),
};

/** Values of these keys for a server that the configuration does not name, and which must not get them. */
export const NO_TRUST = {
  caFile: undefined,
  fingerprint: undefined,
  clientCertificateFile: undefined,
  clientKeyFile: undefined,
} satisfies Record<keyof typeof trust, undefined>;

const times = {
  timeout: duration({ min: '10ms', max: '10m', byDefault: '10s' }).describe(
    'Timeout for an upstream read, including secondaries.',
  ),
  // A third of `timeout`, so that a read tries two secondaries.
  failoverAfterMs: fixed(3000),
  writeTimeout: duration({ min: '10ms', max: '10m', byDefault: '30s' }).describe(
    'Timeout for a write or any other forwarded request.',
  ),
  // A server that sends `Retry-After: 3600`, and responds again after a minute, is used after that minute.
  maxRetryAfterMs: fixed(60_000),
};

const limits = {
  // Twice the reads, because ePIC v2 shares them. `upstreamServers` adds two for each read that `concurrency` adds.
  connections: fixed(2 * DEFAULT_CONCURRENCY),
  concurrency: wholeNumber({ min: 1, max: 10_000, byDefault: DEFAULT_CONCURRENCY }).describe(
    'Maximum concurrent reads per server; fewer, but at least 8, while the server is slow. At most 1,000 more wait, for 2 s; then a stale record is served, or 503. The same bounds apply to forwarded requests.',
  ),
  // The limit of reads falls to this number while the server is slow. A handle gets an eighth of the limit, which is then one read.
  minConcurrency: fixed(8),
  // Reads, and as many forwarded requests: a server that answers 500 requests a second empties the queue within `queueTimeoutMs`.
  queue: fixed(1000),
  // A client without a stale record should not wait longer for a slot.
  queueTimeoutMs: fixed(2000),
  maxRecordSize: size({ min: '1KiB', max: '256MiB', byDefault: '2MiB' }).describe(
    "Maximum bytes of a record's JSON; a larger record is a failure. The native protocol carries 256 KiB. Checking and parsing it each block the event loop for 4 to 10 ms per MiB. Any other response, such as a list, may have 8 MiB.",
  ),
  // For any other parsed response, such as a list of 100,000 handles of 80 characters.
  maxBodyBytes: fixed(8 * 2 ** 20),
  // An unreachable server fails ten reads within milliseconds. Trial reads every 5 s cost it nothing.
  breaker: fixed({ failures: 10, openForMs: 5000 }),
};

/** Keys of `upstream` that each server in `upstreams` may override. */
const perServer = { ...times, ...limits };

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
    'Maximum lag of a secondary: the maximum TTL of its records, and the time after a write or a purge in which only the primary is read, except by an instance that has started since.',
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
    .prefault('0.NA/0.NA')
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

const PREFIXES = 'prefixes such as 21.T11998, 21.T11998.* for those derived from it, or * for all others';

const server = mapping({
  prefixes: list({ allowed: PREFIXES, read: readPrefixPattern }),
  // `app/config.ts` checks it, because plugins add kinds; `none` means no server.
  kind: text({ allowed: 'the kind of a server', pattern: /./ }).default('handle-server'),
  url: address.optional(),
  existenceCheck: flag(false),
  readOnly: flag(false),
  secondaries: list({ allowed: 'http:// or https:// addresses', read: readServerAddress }).default([]),
  ...trust,
  ...perServer,
});

export const upstreams = mappings(server).describe(
  'Servers to use instead of `upstream.url`, each with `prefixes` and `url`. Optional members: `kind` and `existenceCheck` for repositories, see "Repositories", or `kind: none` for prefixes without a server; `readOnly` and `secondaries`; and `caFile`, `fingerprint`, `clientCertificateFile`, `clientKeyFile`, timeouts and limits to override `upstream.*`. The longest matching prefix determines the server.',
);

/** Keys of `upstream` that are defaults for each server in `upstreams`. */
export const INHERITED_KEYS: readonly string[] = Object.keys(perServer);
