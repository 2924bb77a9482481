// Keys of the interfaces: deletion, reverse look-up, ePIC v2, redirects and pages.
import { z } from 'zod';
import { readBaseUrl, readLinkUrl, readOrigin, readWebUrl } from './addresses.js';
import { contrastOf } from './contrast.js';
import {
  duration,
  flag,
  list,
  mappings,
  normalised,
  reloadable,
  section,
  text,
  wholeNumber,
} from './fields.js';

const readPattern = (given: string): string | undefined => (/^\S+$/.test(given) ? given : undefined);

export const deletion = reloadable(
  section({
    handles: flag(false).describe('Whether whole handles may be deleted.'),
    values: flag(false).describe('Whether single values of a handle may be deleted.'),
    allowedFor: list({ allowed: 'handles with `*` for any text', read: readPattern })
      .default([])
      .describe(
        'Handles that may be deleted regardless, whole or by value, such as `21.T11998/TEST-*`, separated by commas.',
      ),
  }),
);

export const batch = section({
  enabled: flag(true).describe(
    'Whether many handles are answered in one request, by `GET /api/handles?handle=` and `POST /api/resolve`.',
  ),
});

export const reverseLookup = section({
  url: normalised({
    allowed: 'an http:// or https:// address with neither path, query nor credentials',
    read: readOrigin,
  })
    .optional()
    .describe('Address of the reverse look-up service for `/hrls/handles`; without it 404.'),
});

const v2Admin = reloadable(
  section({
    index: wholeNumber({ min: 1, max: 2_147_483_647, byDefault: 100 }).describe(
      'Index of the HS_ADMIN value that is added to a PUT or POST without one; the next free index if taken.',
    ),
    handle: text({ allowed: 'a handle, with `{prefix}` or `{identity}` in it', pattern: /^[^\s]{1,2048}$/ })
      .prefault('0.NA/{prefix}')
      .describe(
        'Administrator handle in the added HS_ADMIN; `{prefix}` is the prefix of the handle, `{identity}` alone the index and handle of the caller.',
      ),
    adminIndex: wholeNumber({ min: 0, max: 2_147_483_647, byDefault: 200 }).describe(
      'Administrator index in the added HS_ADMIN.',
    ),
    permissions: text({ allowed: 'twelve digits 0 or 1, list_handles first', pattern: /^[01]{12}$/ })
      .prefault('011111110011')
      .describe('Permissions in the added HS_ADMIN: twelve digits, list_handles first and add_handle last.'),
  }),
);

const search = reloadable(
  section({
    maxHandles: wholeNumber({ min: 0, max: 10_000_000, byDefault: 2000 }).describe(
      'Maximum handles under a prefix that a search without `reverseLookup.url` reads; beyond it 501.',
    ),
    concurrency: wholeNumber({ min: 1, max: 1000, byDefault: 8 }).describe(
      'Maximum concurrent reads of one search.',
    ),
  }),
);

/** A prefix without its slash. */
function readPrefix(given: string): string | undefined {
  return /^[^\s/]+\/?$/.test(given) ? given.replace(/\/$/, '') : undefined;
}

/** A login name and its identity `index:handle`, which may be percent-encoded. */
function readIdentity(given: string): [name: string, identity: string] | undefined {
  const [, name, encoded] = /^([^=:]+)=(.+)$/.exec(given) ?? [];
  const identity = decode(encoded ?? '');
  return name !== undefined && /^\d+:[^\s/]+\/./.test(identity) ? [name, identity] : undefined;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

export const v2 = section({
  enabled: flag(true).describe('Whether `/api/v2/handles` is served.'),
  anonymousRead: reloadable(
    flag(false).describe(
      'Whether ePIC v2 serves anonymous reads from the shared cache; otherwise they need a login.',
    ),
  ),
  realm: reloadable(
    text({ allowed: 'printable ASCII without quotes and backslashes', pattern: /^[ !#-[\]-~]{1,100}$/ })
      .prefault('handle')
      .describe('Realm in `WWW-Authenticate` of a 401 of ePIC v2.'),
  ),
  publicUrl: reloadable(
    normalised({
      allowed: 'an http:// or https:// address without query and credentials',
      read: readBaseUrl,
    })
      .optional()
      .describe(
        'Base URL before `/api/v2/handles` in `Location`, such as `https://pid.example.org`; by default the one of the request.',
      ),
  ),
  prefixes: reloadable(
    list({ allowed: 'prefixes such as `21.T11998/`', read: readPrefix })
      .default([])
      .describe('Prefixes listed by `GET /api/v2/handles`, such as `21.T11998/`, separated by commas.'),
  ),
  identities: reloadable(
    list({ allowed: 'pairs such as `alice=300:21.T11998/USER01`', read: readIdentity })
      .default([])
      .describe(
        'Login names with their identities at the Handle server, such as `alice=300:21.T11998/USER01`, separated by commas.',
      ),
  ),
  admin: v2Admin,
  search,
  lockWait: duration({ min: '0s', max: '10m', byDefault: '10s' }).describe(
    'Timeout for a write that waits for other writes to the same handle; then 503.',
  ),
});

const readHost = (given: string): string | undefined => {
  const host = given.toLowerCase();
  return /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$|^\[[0-9a-f:.]+\]$/.test(host) ? host : undefined;
};

/** Headers of this proxy, of the connection, and those that servers in front obey. */
const OWN_HEADER =
  /^(?:location|set-cookie.*|cache-control|cdn-.*|expires|age|cache-status|vary|etag|last-modified|date|server|via|www-authenticate|proxy-.*|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-.*|access-control-.*|cross-origin-.*|strict-transport-security|referrer-policy|refresh|clear-site-data|retry-after|status|x-(?:request-id|content-type-options|frame-options|accel-.*|sendfile.*|lighttpd-.*|forwarded-.*|xss-protection))$/;

const readHeaderName = (given: string): string | undefined => {
  const name = given.toLowerCase();
  return /^[a-z][a-z0-9-]*$/.test(name) && !OWN_HEADER.test(name) ? name : undefined;
};

export const redirect = section({
  enabled: flag(true).describe('Whether `/<handle>` redirects to the object and record pages are served.'),
  allowedHosts: reloadable(
    list({ allowed: 'host names, with `*.` in front for all below', read: readHost })
      .optional()
      .describe(
        'Allowed redirect targets, such as `example.org,*.example.org`, separated by commas; by default every host.',
      ),
  ),
  allowedHeaders: reloadable(
    list({ allowed: 'header names that a redirect does not set itself', read: readHeaderName })
      .default(['link'])
      .describe(
        'Response headers that 10320/headers values may set on redirects, such as `Link,X-Licence`, separated by commas.',
      ),
  ),
  countryDatabase: reloadable(
    text({ allowed: 'the path of a file', pattern: /^[^\0\n]+$/ })
      .optional()
      .describe(
        'File of a database in the MaxMind format (`.mmdb`) with the countries of addresses, for the `country` of locations; read again by SIGHUP. Without it only `?country=` counts.',
      ),
  ),
  prefixLocations: reloadable(
    flag(true).describe(
      'Whether the locations that a prefix record names (HS_NAMESPACE of `0.NA/<prefix>`) take part in the redirects of the prefix.',
    ),
  ),
});

const readImage = (given: string): string | undefined =>
  /^data:image\/[a-z+.-]+[;,]/.test(given) ? given : readWebUrl(given);

/** The darkest background of text on light pages; `test/property/page-colours` holds src/html/style to it. */
const DARKEST_BACK = '#fdeceb';

const isReadable = (given: string): boolean =>
  /^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(given) && contrastOf(given, DARKEST_BACK) >= 4.5;

const line = text({ allowed: 'a line of text', pattern: /^[^\0-\x1f]{1,500}$/ });

const footerLink = z.strictObject({
  text: line,
  url: normalised({ allowed: 'an http://, https:// or mailto: address', read: readLinkUrl }),
});

export const page = reloadable(
  section({
    title: line.prefault('Handle resolver').describe('Name of the service on every page.'),
    logoUrl: normalised({ allowed: 'an http://, https:// or data:image/ address', read: readImage })
      .optional()
      .describe('URL of a logo beside the name, 36 pixels high; `data:image/…` embeds it.'),
    accentColor: normalised({
      allowed: `a colour such as #00695c or #06c with a contrast of at least 4.5 to ${DARKEST_BACK} (WCAG 2.2 AA)`,
      read: (given) => (isReadable(given) ? given : undefined),
    })
      .optional()
      .describe(
        "Colour of the main button, and of links on light backgrounds, on which it has to be readable (WCAG 2.2 AA), as `'#rrggbb'` or `'#rgb'`; in YAML with the quotes, because `#` begins a comment.",
      ),
    footer: line
      .optional()
      .describe('Text in the footer of every page, such as the operator of the service.'),
    footerUrl: normalised({ allowed: 'an http:// or https:// address', read: readWebUrl })
      .optional()
      .describe('URL that `page.footer` links to.'),
    footerLinks: mappings(footerLink).describe(
      'Links in the footer of every page, such as imprint, privacy and contact, each with `text` and an http, https or mailto `url`; the first mailto link is the contact on error pages.',
    ),
  }),
);
