// Configuration keys for the audit file, the staleness audit, the change feed and its webhook.
import { readWebUrl } from './addresses.js';
import { flag, normalised, section, share, text, wholeNumber } from './fields.js';

const probability = share({ min: 0, max: 1, byDefault: 0 });

export const audit = section({
  file: text({ allowed: 'the absolute path of a file', pattern: /^\/[^\0\n]*[^/\0\n]$/ })
    .optional()
    .describe(
      'Audit file, to which one JSON line is appended for each write and purge, without values and credentials. Its folder must exist and be writable; the file may be renamed at any time (log rotation). By default no audit file is written.',
    ),
  hits: probability.describe(
    'Fraction of hits, such as `0.001`, whose entry is compared with the record at the Handle server afterwards; `0` disables this audit.',
  ),
  writes: probability.describe(
    'Fraction of acknowledged writes after which each instance compares its entry, if any, with the record at the Handle server; `0` disables this audit.',
  ),
  readsPerSecond: wholeNumber({ min: 1, max: 1000, byDefault: 10 }).describe(
    'Maximum average number of audits per second and instance. Each audit reads the handle from the Handle server in the class `background`, and reads it again if the entry was older.',
  ),
});

export const changes = section({
  enabled: flag(false).describe(
    'Whether the admin listener serves the change feed at `GET /changes`, which contains the changes of all instances that share a Redis. `changes.webhook.url` also enables the feed.',
  ),
  maxEntries: wholeNumber({ min: 100, max: 10_000_000, byDefault: 100_000 }).describe(
    'Maximum changes retained for readers of `GET /changes` and for the webhook, in Redis or else in memory, about 400 bytes each. A reader that is further behind gets a `gap`.',
  ),
  webhook: section({
    url: normalised({
      allowed: 'the whole http:// or https:// address, such as https://example.org/changes',
      read: (given) => readWebUrl(given) && given,
    })
      .optional()
      .describe(
        'URL to which changes are posted in signed batches (Standard Webhooks). By default no changes are posted.',
      ),
    secret: text({
      allowed: 'Base64 of 24 to 64 bytes, also after whsec_',
      pattern: /^(?:whsec_)?[A-Za-z0-9+/]{32,88}={0,2}$/,
    })
      .optional()
      .describe(
        'Signing key (HMAC-SHA256) in Base64, for example from `openssl rand -base64 32`; required with `changes.webhook.url`.',
      ),
  }),
});
