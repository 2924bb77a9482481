// Reads the query parameters of a redirect request, as HDLProxy reads them, and whether it wants JSON.
import Negotiator from 'negotiator';
import { type RecordQuery, readParameters } from '../http/query.js';
import { LINKSET_JSON, LINKSET_TEXT } from './signposting.js';
import type { WantedAttribute } from './locations/select.js';

export interface RedirectQuery extends RecordQuery {
  /** `page`: the record, as a page or as JSON; `locations`: `action=showurls`; `api`: as the record interface. */
  show: 'redirect' | 'page' | 'locations' | 'linkset' | 'api';
  /** `format` of a link set; otherwise Accept decides. */
  linksetFormat: string | undefined;
  followAliases: boolean;
  /** Appended to the URL. */
  urlAppend: string;
  /** `locatt`: attributes that select a location. */
  locationAttributes: readonly WantedAttribute[];
  wantsMetadata: boolean;
  country: string | undefined;
  /** `ip`: the address whose country is looked up, instead of the client's. */
  address: string | undefined;
  /** `redirectionHeaders`: the headers of the redirect with status 200. */
  isDry: boolean;
}

/** `;` separates parameters too, and `+` is itself (recordings "locatt: locatt=id:b+", "urlappend: plus"). */
export const readRedirectParameters = (query: string): URLSearchParams =>
  readParameters(query.replace(/;/g, '&').replace(/\+/g, '%2B'));

/** A flag is on when present: `auth=false` is on (recording "redirect: auth=false"). */
export function readRedirectQuery(parameters: URLSearchParams): RedirectQuery {
  return {
    show: readShow(parameters),
    publicOnly: true,
    authoritative: parameters.has('auth') || parameters.has('cert'),
    linksetFormat: parameters.get('format')?.toLowerCase(),
    followAliases: !parameters.has('ignore_aliases'),
    indexes: parameters.getAll('index').filter(isIndex).map(Number),
    types: parameters.getAll('type'),
    urlAppend: parameters.get('urlappend') ?? '',
    locationAttributes: readLocationAttributes(parameters),
    wantsMetadata: actionOf(parameters) === 'metadata',
    country: parameters.get('country') ?? undefined,
    address: parameters.get('ip') ?? undefined,
    isDry: parameters.has('redirectionHeaders'),
  };
}

const actionOf = (parameters: URLSearchParams): string | undefined => parameters.get('action')?.toLowerCase();

/**
 * A known action wins over `noredirect` (recording "action=redirect&noredirect"). HDLProxy ignores
 * parameters named `api` or `metadata`; they are actions only.
 */
export function readShow(parameters: URLSearchParams): RedirectQuery['show'] {
  const action = actionOf(parameters);
  if (action === 'api') return 'api';
  if (action === 'showurls') return 'locations';
  if (action === 'linkset') return 'linkset';
  if (action === 'redirect') return 'redirect';
  return action === 'showvalues' || parameters.has('noredirect') ? 'page' : 'redirect';
}

/** An invalid index is ignored; the record interface refuses it (recording "redirect: index=abc"). */
const isIndex = (index: string): boolean => /^[+-]?\d{1,10}$/.test(index);

/** Each attribute is compared with every location. */
const MAX_LOCATION_ATTRIBUTES = 50;

/** The name is trimmed; the value is all text after the first colon. Without a colon any value matches. */
const readLocationAttributes = (parameters: URLSearchParams): WantedAttribute[] =>
  parameters
    .getAll('locatt')
    .slice(0, MAX_LOCATION_ATTRIBUTES)
    .map((pair) => {
      const [name = '', ...rest] = pair.split(':');
      return { name: name.trim(), value: rest.length === 0 ? undefined : rest.join(':'), by: 'locatt' };
    });

// HTML comes first: it wins at equal quality and without an Accept header.
const TYPES = ['text/html', 'application/json', 'application/problem+json'];

/** True for programs that prefer JSON; browsers prefer HTML. */
export function prefersJson(accept: string | undefined): boolean {
  const [best = 'text/html'] = new Negotiator({ headers: { accept } }).mediaTypes(TYPES);
  return best !== 'text/html';
}

const LINKSET_TYPES = new Map([
  ['json', LINKSET_JSON],
  ['text', LINKSET_TEXT],
]);

/** The media type of a link set: that of `format`, else the type that Accept prefers. */
export function linksetType({ linksetFormat = '' }: RedirectQuery, accept: string | undefined): string {
  const negotiator = new Negotiator({ headers: { accept: LINKSET_TYPES.get(linksetFormat) ?? accept } });
  return negotiator.mediaTypes([...LINKSET_TYPES.values()])[0] ?? LINKSET_JSON;
}

/** The query of most requests. */
export const NO_PARAMETERS = readRedirectQuery(new URLSearchParams());
