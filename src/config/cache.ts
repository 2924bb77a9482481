// The keys of what is kept, for how long, and in how much memory.
import { duration, reloadable, section, size, wholeNumber } from './fields.js';

const found = section({
  minTtl: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '0s' }).describe(
      'Shortest time a record is kept, even when its values ask for less; at most `cache.found.maxTtl`.',
    ),
  ),
  maxTtl: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '1h' }).describe(
      'Longest time a record is kept, even when its values allow more.',
    ),
  ),
  maxEntries: wholeNumber({ min: 1, max: 100_000_000, byDefault: 1_000_000 }).describe(
    'Greatest number of records in memory.',
  ),
});

const notFound = section({
  ttl: reloadable(
    duration({ min: '0s', max: '30d', byDefault: '30s' }).describe(
      'How long it is remembered that a handle does not exist; `0s` turns this off.',
    ),
  ),
  maxEntries: wholeNumber({ min: 1, max: 100_000_000, byDefault: 100_000 }).describe(
    'Greatest number of unknown handles remembered in memory.',
  ),
});

export const cache = section({
  maxBytes: size({ min: '1KiB', max: '1024GiB', byDefault: '256MiB' }).describe(
    'Memory in bytes that the records kept in memory may take.',
  ),
  found,
  notFound,
  staleIfError: reloadable(
    duration({ min: '0s', max: '365d', byDefault: '24h' }).describe(
      'How long past its time a record may stand in when the upstream fails (RFC 8767).',
    ),
  ),
  refreshAhead: section({
    minHits: reloadable(
      wholeNumber({ min: 0, max: 1_000_000, byDefault: 3 }).describe(
        'Number of hits from which a record is refreshed before its time is up; `0` turns this off.',
      ),
    ),
  }),
});
