// Reads the query parameters of a redirect request, as HDLProxy reads them.
import type { RecordQuery } from '../http/query.js';

export interface RedirectQuery extends RecordQuery {
  /** `page`: the record, as a page or as JSON; `locations`: `action=showurls`; `api`: as the record interface. */
  show: 'redirect' | 'page' | 'locations' | 'api';
  followAliases: boolean;
  /** Appended to the URL. */
  urlAppend: string;
  /** `locatt`: attributes that select a location, as names and values. */
  locationAttributes: readonly (readonly [name: string, value: string])[];
  country: string | undefined;
}

/** A flag is on when present: `auth=false` is on (recording "redirect: auth=false"). */
export function readRedirectQuery(parameters: URLSearchParams): RedirectQuery {
  return {
    show: readShow(parameters),
    publicOnly: true,
    authoritative: parameters.has('auth') || parameters.has('cert'),
    followAliases: !parameters.has('ignore_aliases'),
    indexes: parameters.getAll('index').filter(isIndex).map(Number),
    types: parameters.getAll('type'),
    urlAppend: parameters.get('urlappend') ?? '',
    locationAttributes: readLocationAttributes(parameters),
    country: parameters.get('country') ?? undefined,
  };
}

export function readShow(parameters: URLSearchParams): RedirectQuery['show'] {
  const action = parameters.get('action')?.toLowerCase();
  if (action === 'api' || parameters.has('api')) return 'api';
  if (action === 'showurls') return 'locations';
  if (action === 'showvalues' || parameters.has('noredirect')) return 'page';
  return 'redirect';
}

/** An invalid index is ignored; the record interface refuses it (recording "redirect: index=abc"). */
const isIndex = (index: string): boolean => /^[+-]?\d{1,10}$/.test(index);

/** Each is compared with every location. */
const MAX_LOCATION_ATTRIBUTES = 50;

function readLocationAttributes(parameters: URLSearchParams): [string, string][] {
  const given = parameters
    .getAll('locatt')
    .slice(0, MAX_LOCATION_ATTRIBUTES)
    .map((pair): [string, string] => {
      const colon = pair.indexOf(':');
      return colon === -1 ? [pair, ''] : [pair.slice(0, colon), pair.slice(colon + 1)];
    });
  return parameters.has('metadata') ? [...given, ['role', 'metadata']] : given;
}
