// Configuration keys for audits: the audit file, the staleness audit, the change feed and its webhook.
import { readWebUrl } from './addresses.js';
import { flag, normalised, section, share, text, wholeNumber } from './fields.js';

const probability = share({ min: 0, max: 1, byDefault: 0 });

export const audit = section({
  file: text({ allowed: 'the absolute path of a file', pattern: /^\/[^\0\n]*[^/\0\n]$/ })
    .optional()
    .describe(
      'File to which a line of JSON is appended for every write and purge, without values and credentials; the folder must exist and be writable. It may be renamed at any time (rotation). Without it there is no audit file.',
    ),
  hits: probability.describe(
    'Share of hits, such as `0.001`, whose entry is then compared with the record at the Handle server; `0` disables it.',
  ),
  writes: probability.describe(
    'Share of acknowledged writes after which each instance compares the entry that it has, if any, with the record at the Handle server; `0` disables it.',
  ),
  readsPerSecond: wholeNumber({ min: 1, max: 1000, byDefault: 10 }).describe(
    'Maximum audited hits and writes of one instance per second, on average; each reads the handle from the Handle server in the class `background`, and once more if the entry was older.',
  ),
});

export const changes = section({
  enabled: flag(false).describe(
    'Whether the admin listener serves the changes at `GET /changes`; with Redis those of all instances. `changes.webhook.url` enables it too.',
  ),
  maxEntries: wholeNumber({ min: 100, max: 10_000_000, byDefault: 100_000 }).describe(
    'Maximum changes that are kept for readers of `GET /changes` and for the webhook, in Redis or else in memory, about 400 bytes each; a reader that is further behind gets a `gap`.',
  ),
  webhook: section({
    url: normalised({
      allowed: 'the whole http:// or https:// address, such as https://example.org/changes',
      read: (given) => readWebUrl(given) && given,
    })
      .optional()
      .describe(
        'URL to which changes are posted in signed batches (Standard Webhooks); without it, none is.',
      ),
    secret: text({
      allowed: 'Base64 of 24 to 64 bytes, also after whsec_',
      pattern: /^(?:whsec_)?[A-Za-z0-9+/]{32,88}={0,2}$/,
    })
      .optional()
      .describe(
        'Key of the signatures (HMAC-SHA256) in Base64, such as from `openssl rand -base64 32`; needed with `changes.webhook.url`.',
      ),
  }),
});
