// The query of a redirecting address, read as HDLProxy reads it.
import type { Question } from '../http/query.js';

export interface Asked extends Question {
  show: 'redirect' | 'values' | 'urls' | 'api';
  followAliases: boolean;
  /** Put behind the address that is redirected to. */
  urlAppend: string;
  /** Attributes that a location has to have, as names and values. */
  locationAttributes: readonly (readonly [name: string, value: string])[];
  country: string | undefined;
}

/** Presence is enough for a flag: `auth=false` is on (recording "redirect: auth=false"). */
export function readAsked(parameters: URLSearchParams): Asked {
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

/** Such a question is answered like one on the record interface, failures included. */
export const asksForApi = (parameters: URLSearchParams): boolean => readShow(parameters) === 'api';

function readShow(parameters: URLSearchParams): Asked['show'] {
  const action = parameters.get('action')?.toLowerCase();
  if (action === 'api' || parameters.has('api')) return 'api';
  if (action === 'showurls') return 'urls';
  if (action === 'showvalues' || parameters.has('noredirect')) return 'values';
  return 'redirect';
}

/** A bad index is ignored, other than on the record interface (recording "redirect: index=abc"). */
const isIndex = (index: string): boolean => /^[+-]?\d{1,10}$/.test(index);

/** Each is looked for at every location. */
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
