// The configuration keys of ePIC v2.
import { duration, list, reloadable, section, spelled, text, wholeNumber, yesOrNo } from './fields.js';
import { readBaseUrl } from './urls.js';

const admin = reloadable(
  section({
    index: wholeNumber({ min: 1, max: 2_147_483_647, byDefault: 100 }).describe(
      'Index of the HS_ADMIN value that is added when a PUT or POST brings none; the next free one when taken.',
    ),
    handle: text({ allowed: 'a handle, with `{prefix}` or `{identity}` in it', pattern: /^[^\s]{1,2048}$/ })
      .prefault('0.NA/{prefix}')
      .describe(
        'Whom the added HS_ADMIN names; `{prefix}` is the prefix of the handle, `{identity}` alone the index and handle of the caller.',
      ),
    adminIndex: wholeNumber({ min: 0, max: 2_147_483_647, byDefault: 200 }).describe(
      'Index in `v2.admin.handle` that the added HS_ADMIN names.',
    ),
    permissions: text({ allowed: 'twelve digits 0 or 1, list_handles first', pattern: /^[01]{12}$/ })
      .prefault('011111110011')
      .describe('Permissions of the added HS_ADMIN: twelve digits, list_handles first and add_handle last.'),
  }),
);

const search = reloadable(
  section({
    maxHandles: wholeNumber({ min: 0, max: 10_000_000, byDefault: 2000 }).describe(
      'Greatest number of handles under a prefix that a search without `reverseLookup.url` reads; beyond it 501.',
    ),
    concurrency: wholeNumber({ min: 1, max: 1000, byDefault: 8 }).describe(
      'Number of records that one search reads at the same time.',
    ),
  }),
);

export const v2 = section({
  enabled: yesOrNo(true).describe('Whether `/api/v2/handles` is answered (`true` or `false`).'),
  anonymousRead: reloadable(
    yesOrNo(false).describe(
      'Whether handles can be read through ePIC v2 without a login, from the shared cache (`true` or `false`).',
    ),
  ),
  realm: reloadable(
    text({ allowed: 'printable ASCII without quotes and backslashes', pattern: /^[ !#-[\]-~]{1,100}$/ })
      .prefault('handle')
      .describe('Realm that a 401 of ePIC v2 names in `WWW-Authenticate`.'),
  ),
  publicUrl: reloadable(
    spelled({
      allowed: 'an http:// or https:// address without query and credentials',
      read: readBaseUrl,
    })
      .nullable()
      .default(null)
      .describe(
        'What stands before `/api/v2/handles` in a `Location`, such as `https://pid.example.org`; none: as the client asked.',
      ),
  ),
  prefixes: reloadable(
    list({ allowed: 'prefixes such as `21.T11998/`', read: readPrefix })
      .nullable()
      .default(null)
      .describe('Prefixes that `GET /api/v2/handles` names, such as `21.T11998/`, separated by commas.'),
  ),
  identities: reloadable(
    list({ allowed: 'pairs such as `alice=300:21.T11998/USER01`', read: readPair })
      .nullable()
      .default(null)
      .describe(
        'Login names and whom they are at the Handle server, such as `alice=300:21.T11998/USER01`, separated by commas.',
      ),
  ),
  admin,
  search,
  lockWait: duration({ min: '0s', max: '10m', byDefault: '10s' }).describe(
    'How long a write waits for others that change the same handle; after that 503.',
  ),
});

/** A prefix without its slash. */
function readPrefix(given: string): string | undefined {
  return /^[^\s/]+\/?$/.test(given) ? given.replace(/\/$/, '') : undefined;
}

/** A login name and its identity `index:handle`, which may be percent-encoded. */
function readPair(given: string): [name: string, identity: string] | undefined {
  const [, name, encoded] = /^([^=:]+)=(.+)$/.exec(given) ?? [];
  const identity = decoded(encoded ?? '');
  return name !== undefined && /^\d+:[^\s/]+\/./.test(identity) ? [name, identity] : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
