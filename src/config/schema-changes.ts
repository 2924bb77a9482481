// Keys of the audit file, the feed of changes and the webhook.
import { readWebUrl } from './addresses.js';
import { flag, normalised, section, text, wholeNumber } from './fields.js';

export const audit = section({
  file: text({ allowed: 'the absolute path of a file', pattern: /^\/[^\0\n]*[^/\0\n]$/ })
    .optional()
    .describe(
      'File to which a line of JSON is appended for every write and purge, without values and credentials; the folder must exist and be writable. It may be renamed at any time (rotation). Without it there is no audit file.',
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
