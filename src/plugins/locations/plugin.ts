// Locations: 10320/loc, its links, headers and includes, and the locations of the prefix.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, filePath, list, readPrefixName, reloadable } from '../../config/fields.js';
import { isTree } from '../../config/keys.js';
import { parseYaml } from '../../config/load.js';
import type { Config } from '../../config/schema.js';
import { type Judge, fileProblem, pathProblem } from '../../config/start-problems.js';
import { defineErrors } from '../../errors.js';
import { databaseProblem } from './countries.js';

export const ERRORS = defineErrors({
  REDIRECT_INACTIVE: { status: 404, responseCode: 100, title: 'This prefix is inactive' },
});

/** Headers that the proxy sets itself, hop-by-hop headers, and headers that control proxies in front. */
const OWN_HEADER =
  /^(?:location|set-cookie.*|cdn-.*|expires|age|cache-status|vary|etag|last-modified|date|server|via|www-authenticate|proxy-.*|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-.*|access-control-.*|cross-origin-.*|strict-transport-security|referrer-policy|refresh|clear-site-data|retry-after|status|surrogate-.*|x-(?:request-id|content-type-options|frame-options|accel-.*|sendfile.*|lighttpd-.*|forwarded-.*|xss-protection))$/;

const readHeaderName = (given: string): string | undefined => {
  const name = given.toLowerCase();
  const isOwn = OWN_HEADER.test(name) || name.endsWith('cache-control');
  return /^[a-z][a-z0-9-]*$/.test(name) && !isOwn ? name : undefined;
};

const SECTIONS = {
  redirect: {
    allowedHeaders: reloadable(
      list({ allowed: 'header names that a redirect does not set itself', read: readHeaderName })
        .prefault('link')
        .describe(
          'Response headers that 10320/headers values may set on redirects, such as `Link,X-Licence`, separated by commas.',
        ),
    ),
    countryDatabase: reloadable(
      filePath.describe(
        'Country database in the MaxMind format (`.mmdb`), used to select locations by `country`; SIGHUP reloads it. Without it only `?country=` counts.',
      ),
    ),
    locationsFile: reloadable(
      filePath.describe(
        'YAML file with a 10320/loc list for each prefix whose record (HS_NAMESPACE in `0.NA/<prefix>`) you cannot change; it replaces the lists that the record names. SIGHUP reloads it. See "Locations of a prefix".',
      ),
    ),
  },
};

export type LocationsConfig = Config & SectionsOf<typeof SECTIONS>;

/** Bounds the ranges of a list, each of which has at least a comma, to those that are read. */
const MAX_LIST_CHARS = 10_000;
const MAX_PREFIXES = 1000;

/** A tag, an XML declaration or a comment. An element has at most 100 attributes, as in a record. */
const TAG =
  /<(\/?(?:locations|location|loc_template|include|includenamespace))(?:\s+[\w:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*')){0,100}\s*\/?>|<\?xml[^<>]*\?>|<!--[^]*?-->/gi;

/** Returns the list of each prefix, in upper case, or what is wrong with the file. Stricter than for lists in records. */
export function readLocationsFile(content: string): ReadonlyMap<string, string> | string {
  const given: unknown = parseYaml(content).toJS();
  const lists = isTree(given) ? Object.entries(given) : [];
  if (lists.length === 0 || lists.length > MAX_PREFIXES)
    return `give 1 to ${MAX_PREFIXES} prefixes, each with a list, such as 20.500.1: '<locations>…</locations>'`;
  const found = new Map<string, string>();
  for (const [name, xml] of lists) {
    const prefix = readPrefixName(name);
    if (prefix === undefined) return `${name} is no prefix`;
    if (found.has(prefix)) return `${name} is given twice`;
    if (typeof xml !== 'string') return `the list of ${name} is no text`;
    const problem = problemOfList(xml);
    if (problem !== undefined) return `the list of ${name}: ${problem}`;
    found.set(prefix, xml);
  }
  return found;
}

function problemOfList(xml: string): string | undefined {
  if (xml.length > MAX_LIST_CHARS) return `it has more than ${MAX_LIST_CHARS} characters`;
  if (xml.includes('\uFFFD')) return 'it is not UTF-8, or has U+FFFD: save the file in UTF-8';
  const names = [...xml.matchAll(TAG)].flatMap(([, name]) => name?.toLowerCase() ?? []);
  const [between = ''] = /[<>]/.exec(xml.replace(TAG, '')) ?? [];
  if (between !== '') return `a tag is misspelt or not closed, or ${between} is not escaped`;
  if (names[0] !== 'locations' || names.at(-1)?.endsWith('locations') !== true)
    return 'it is no <locations> element';
  return names.some((name) => !/^\/|^locations$/.test(name)) ? undefined : 'it has no location';
}

const locationsProblem: Judge = (content, path) => {
  const lists = readLocationsFile(content);
  return typeof lists === 'string' ? `${path} is no file of locations: ${lists}` : undefined;
};

export const locations: Plugin<LocationsConfig> = {
  name: 'locations',
  sections: SECTIONS,
  errors: ERRORS,
  startProblems: ({ redirect }, readFile) => [
    ['redirect.countryDatabase', pathProblem(redirect.countryDatabase, databaseProblem)],
    ['redirect.locationsFile', fileProblem(redirect.locationsFile, readFile, locationsProblem)],
  ],
  reloadsFile: ({ redirect: { countryDatabase, locationsFile } }) =>
    countryDatabase !== undefined || locationsFile !== undefined,
  isEnabled: ({ redirect }) => redirect.enabled,
  load: () => import('./locations.js'),
};
