// The keys of the Handle server: where it is, how long it may take, and how much it is asked at a time.
import { duration, list, section, size, spelled, text, wholeNumber, yesOrNo } from './fields.js';
import { readFingerprints, readOrigin } from './urls.js';

const ADDRESS = 'an http:// or https:// address with neither path, query nor credentials';

const breaker = section({
  failures: wholeNumber({ min: 1, max: 10_000, byDefault: 10 }).describe(
    'Number of consecutive failures that opens the circuit breaker of a server. A failed connection counts each time, any other failure once per handle; 500 and invalid responses need ten times as many handles.',
  ),
  openFor: duration({ min: '10ms', max: '1h', byDefault: '5s' }).describe(
    'Period of an open circuit breaker: how long an unreachable server is not contacted; any other server gets requests for at most `failures` handles in it.',
  ),
});

const trust = {
  caFile: text({ allowed: 'the path of a PEM file', pattern: /^[^\0\n]+$/ })
    .nullable()
    .default(null)
    .describe(
      'PEM file with the certificate authority that signed the certificates of upstream and mirrors.',
    ),
  fingerprint: spelled({
    allowed: 'a SHA-256 fingerprint: 64 hex digits, colons between the pairs or not; several with commas',
    read: readFingerprints,
  })
    .nullable()
    .default(null)
    .describe(
      'SHA-256 of the only certificates that upstream and mirrors may show, in hex with or without colons, separated by commas.',
    ),
};

const times = {
  timeout: duration({ min: '10ms', max: '10m', byDefault: '10s' }).describe(
    'How long the upstream may take for one answer, mirrors included.',
  ),
  failoverAfter: duration({ min: '10ms', max: '10m', byDefault: '3s' }).describe(
    'How long one server may take for a read before the next mirror is asked instead.',
  ),
  writeTimeout: duration({ min: '10ms', max: '10m', byDefault: '30s' }).describe(
    'How long the upstream may take for a write, or for any other request that is passed on.',
  ),
  staleAfter: duration({ min: '1ms', max: '10m', byDefault: '1.8s' }).describe(
    'How long a reader waits for the upstream before a stale record stands in (RFC 8767); less than `upstream.timeout`.',
  ),
  retryAfter: duration({ min: '0s', max: '1h', byDefault: '5s' }).describe(
    'How long a handle is not requested again after a failure (readers get the stale record or the same error), and how long a failed server is tried last; `0s` turns both off.',
  ),
  maxRest: duration({ min: '0s', max: '1d', byDefault: '1m' }).describe(
    'Longest time a server is left alone because it asked for that with 429 or 503 and `Retry-After`; `0s`: never.',
  ),
};

const amounts = {
  connections: wholeNumber({ min: 1, max: 10_000, byDefault: 64 }).describe(
    'Greatest number of connections to each server at a time.',
  ),
  concurrency: wholeNumber({ min: 1, max: 10_000, byDefault: 64 }).describe(
    'Greatest number of reads that each server is asked at a time, and of other requests that are passed on at a time.',
  ),
  queue: wholeNumber({ min: 0, max: 1_000_000, byDefault: 1000 }).describe(
    'Greatest number of each kind that wait for their turn; beyond it a stale record stands in, or 503 is answered.',
  ),
  queueTimeout: duration({ min: '1ms', max: '10m', byDefault: '2s' }).describe(
    'How long one of them waits for its turn; after that as above.',
  ),
  maxBodySize: size({ min: '1KiB', max: '256MiB', byDefault: '16MiB' }).describe(
    'Largest answer in bytes that is read from the upstream; a larger one counts as a failure.',
  ),
};

export const upstream = section({
  url: spelled({ allowed: ADDRESS, read: readOrigin })
    .nullable()
    .default(null)
    .describe('Address of the Handle server, such as `https://handle.example.org:8000`; needed to start.'),
  mirrors: list({ allowed: 'http:// or https:// addresses', read: readOrigin })
    .nullable()
    .default(null)
    .describe(
      'Addresses of mirrors of the Handle server, separated by commas, asked in this order when it fails; for anonymous reads only.',
    ),
  mirrorMaxTtl: duration({ min: '0s', max: '365d', byDefault: '1m' }).describe(
    'How far a mirror may lag behind: what it says is kept no longer, and for so long after a write the primary alone is asked for a handle.',
  ),
  ...trust,
  ...times,
  ...amounts,
  caseSensitive: yesOrNo(false).describe(
    'Whether the upstream tells handles apart whose suffixes differ only in case (`true` or `false`).',
  ),
  breaker,
});
