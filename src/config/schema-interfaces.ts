// Configuration keys for deletion, reverse lookup, ePIC v2, redirects and pages, and the native protocol.
import { tryDecode } from '../handle/bytes.js';
import { readBaseUrl, readHandlePattern, readLinkUrl, readWebUrl } from './addresses.js';
import {
  fixed,
  flag,
  list,
  mapping,
  mappings,
  normalised,
  reloadable,
  section,
  text,
  wholeNumber,
} from './fields.js';

export const deletion = reloadable(
  section({
    handles: flag(false).describe('Whether whole handles may be deleted.'),
    values: flag(false).describe('Whether single values of a handle may be deleted.'),
    allowedFor: list({ allowed: 'handles with a slash, and `*` for any text', read: readHandlePattern })
      .default([])
      .describe(
        'Handles whose deletion, or deletion of single values, is always allowed, such as `21.T11998/TEST-*`, separated by commas.',
      ),
  }),
);

export const baseUrl = normalised({
  allowed: 'an http:// or https:// address without query and credentials',
  read: readBaseUrl,
});

const v2Admin = reloadable(
  section({
    // The index of the HS_ADMIN value that the original ePIC service adds; the next free index if it is taken.
    index: fixed(100),
    handle: text({ allowed: 'a handle, with `{prefix}` or `{identity}` in it', pattern: /^[^\s]{1,2048}$/ })
      .prefault('0.NA/{prefix}')
      .describe(
        'Administrator handle in the HS_ADMIN value that is added to a PUT or POST without one, at index 100 or the next free one; `{prefix}` is the prefix of the handle, `{identity}` alone the index and handle of the caller.',
      ),
    adminIndex: wholeNumber({ min: 0, max: 2_147_483_647, byDefault: 200 }).describe(
      'Administrator index in the added HS_ADMIN.',
    ),
    // list_handles first: all rights but to list handles, and to add and delete prefixes. A client that gives others sends
    // its own HS_ADMIN value.
    permissions: fixed('011111110011'),
  }),
);

/** Parses a prefix with or without its slash. */
function readPrefix(given: string): string | undefined {
  return /^[^\s/]+\/?$/.test(given) ? given.replace(/\/$/, '') : undefined;
}

/** Parses `name=identity`: a login name and its identity `index:handle`, which may be percent-encoded. */
function readIdentity(given: string): [name: string, identity: string] | undefined {
  const [, name, encoded] = /^([^=:]+)=(.+)$/.exec(given) ?? [];
  const identity = tryDecode(decodeURIComponent, encoded ?? '') ?? '';
  return name !== undefined && /^\d+:[^\s/]+\/./.test(identity) ? [name, identity] : undefined;
}

export const v2 = section({
  enabled: flag(true).describe('Whether `/api/v2/handles` is served.'),
  anonymousRead: reloadable(
    flag(false).describe(
      'Whether ePIC v2 serves anonymous reads from the shared cache; otherwise they need a login.',
    ),
  ),
  publicUrl: reloadable(
    baseUrl
      .optional()
      .describe(
        "Base URL before `/api/v2/handles` in `Location`, such as `https://pid.example.org`; by default the request's.",
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
  // A search without `reverseLookup.url` reads every record of the prefix, eight at a time.
  // `Depth: 1` sends at most 32 MiB, 16 KiB for each of as many records; a usual one has 2 KiB.
  search: fixed({ maxHandles: 2000, maxBytes: 32 * 2 ** 20, concurrency: 8 }),
  // Maximum wait for other writes to the same handle, which take half a second each in practice.
  lockWaitMs: fixed(10_000),
});

const readHost = (given: string): string | undefined => {
  const host = given.toLowerCase();
  return /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$|^\[[0-9a-f:.]+\]$/.test(host) ? host : undefined;
};

export const redirect = {
  enabled: flag(true).describe('Whether to serve redirects (`/<handle>`) and record pages.'),
  allowedHosts: reloadable(
    list({ allowed: 'host names, with `*.` in front for all below', read: readHost })
      .optional()
      .describe(
        'Hosts that redirects may lead to, such as `example.org,*.example.org`, separated by commas; by default every host.',
      ),
  ),
};

const readImage = (given: string): string | undefined =>
  /^data:image\/[a-z+.-]+[;,]/.test(given) ? given : readWebUrl(given);

/** Computes the relative luminance (WCAG 2.2) of `#rgb` or `#rrggbb`. */
function luminance(hex: string): number {
  const digits = hex.length === 4 ? hex.replace(/[^#]/g, '$&$&') : hex;
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = parseInt(digits.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Computes the contrast ratio (WCAG 2.2) of two colours, from 1 to 21. */
export function contrastOf(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

/** The darkest text background on light pages, as `test/property/page-colours` checks. */
const DARKEST_BACK = '#fdeceb';

const hasContrast = (given: string): boolean =>
  /^#(?:[\da-f]{3}|[\da-f]{6})$/i.test(given) && contrastOf(given, DARKEST_BACK) >= 4.5;

const line = text({ allowed: 'a line of text', pattern: /^[^\0-\x1f]{1,500}$/ });

const footerLink = mapping({
  text: line,
  url: normalised({ allowed: 'an http://, https:// or mailto: address', read: readLinkUrl }),
});

export const page = reloadable(
  section({
    title: line.prefault('Handle resolver').describe('Name of the service on every page.'),
    logoUrl: normalised({ allowed: 'an http://, https:// or data:image/ address', read: readImage })
      .optional()
      .describe('URL of a logo next to the name, 36 pixels high; `data:image/…` embeds it.'),
    accentColor: normalised({
      allowed: `a colour such as #00695c or #06c with a contrast of at least 4.5 to ${DARKEST_BACK} (WCAG 2.2 AA)`,
      read: (given) => (hasContrast(given) ? given : undefined),
    })
      .optional()
      .describe(
        "Colour of the main button, and of links on light backgrounds, on which it has to be readable (WCAG 2.2 AA), as `'#rrggbb'` or `'#rgb'`; in YAML with the quotes, because `#` begins a comment.",
      ),
    footer: line
      .optional()
      .describe('Text in the footer of every page, such as the operator of the service.'),
    footerLinks: mappings(footerLink).describe(
      'Links in the footer of every page, such as imprint, privacy and contact, each with `text` and an http, https or mailto `url`; the first mailto link is the contact on error pages.',
    ),
  }),
);
