// Locations: 10320/loc, its links, headers and includes, and the locations of the prefix.
import type { Plugin } from '../../plugin.js';
import { fixed, list, reloadable, text } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import type { SectionsOf } from '../../config/sections.js';
import { type Judge, fileProblem } from '../../config/start-problems.js';
import { defineErrors } from '../../errors.js';

export const ERRORS = defineErrors({
  REDIRECT_INACTIVE: { status: 404, responseCode: 100, title: 'This prefix is inactive' },
});

/**
 * Headers that the proxy sets itself, hop-by-hop headers, and headers that control reverse proxies in front.
 */
const OWN_HEADER =
  /^(?:location|set-cookie.*|cache-control|cdn-.*|expires|age|cache-status|vary|etag|last-modified|date|server|via|www-authenticate|proxy-.*|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-.*|access-control-.*|cross-origin-.*|strict-transport-security|referrer-policy|refresh|clear-site-data|retry-after|status|x-(?:request-id|content-type-options|frame-options|accel-.*|sendfile.*|lighttpd-.*|forwarded-.*|xss-protection))$/;

const readHeaderName = (given: string): string | undefined => {
  const name = given.toLowerCase();
  return /^[a-z][a-z0-9-]*$/.test(name) && !OWN_HEADER.test(name) ? name : undefined;
};

const SECTIONS = {
  redirect: {
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
          'Country database in the MaxMind format (`.mmdb`), used to select locations by `country`; SIGHUP reloads it. Without it only `?country=` counts.',
        ),
    ),
    // HDLProxy does this for the locations that a prefix record (HS_NAMESPACE in `0.NA/<prefix>`) names.
    prefixLocations: fixed(true),
  },
};

export type LocationsConfig = Config & SectionsOf<typeof SECTIONS>;

/** Marker that precedes the metadata in the MaxMind format. */
const DATABASE_MARK = 'MaxMind.com';

const databaseProblem: Judge = (content, path) =>
  content.includes(DATABASE_MARK) ? undefined : `${path} is not a database in the MaxMind format`;

export const locations: Plugin<LocationsConfig> = {
  name: 'locations',
  sections: SECTIONS,
  errors: ERRORS,
  startProblems: ({ redirect }, readFile) => [
    ['redirect.countryDatabase', fileProblem(redirect.countryDatabase, readFile, databaseProblem)],
  ],
  reloadsFile: ({ redirect }) => redirect.countryDatabase !== undefined,
  isEnabled: ({ redirect }) => redirect.enabled,
  load: () => import('./locations.js'),
};
