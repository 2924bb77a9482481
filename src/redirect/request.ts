// Parses redirect query parameters as HDLProxy does, and negotiates JSON, HTML or the format of a link set.
import { type HandleValue, createValueFilter, selectsAll } from '../handle/value.js';
import { negotiatorOf } from '../http/accept.js';
import { type RecordQuery, parseParameters } from '../http/target.js';

export interface RedirectQuery extends RecordQuery {
  /** `page`: record as HTML or JSON; `locations`: XML for `showurls`; `linkset`: typed links; `api`: record JSON. */
  show: 'redirect' | 'page' | 'locations' | 'linkset' | 'api';
  /** The `format` parameter of a link set. By default, Accept selects the format. */
  linksetFormat: string | undefined;
  followAliases: boolean;
  /** Whether `index` and `type` select a value; undefined if all are selected. */
  isSelected: ((value: HandleValue) => boolean) | undefined;
  /** Text to append to the target URL. */
  urlAppend: string;
  /** All parameters, of which plugins read their own. */
  parameters: URLSearchParams;
  /** Set by `redirectionHeaders`: sends the redirect's headers with status 200. */
  isDry: boolean;
}

/** Parses `;` as a separator and `+` as a plus sign (recordings "locatt: locatt=id:b+", "urlappend: plus"). */
export const readRedirectParameters = (query: string): URLSearchParams =>
  parseParameters(query.replace(/;/g, '&').replace(/\+/g, '%2B'));

/** Reads flags by presence: `auth=false` counts as set (recording "redirect: auth=false"). */
export function readRedirectQuery(parameters: URLSearchParams): RedirectQuery {
  const indexes = parameters.getAll('index').filter(isIndex).map(Number);
  const types = parameters.getAll('type');
  const selection = { indexes, types };
  return {
    ...selection,
    isSelected: selectsAll(selection) ? undefined : createValueFilter(selection),
    show: readShow(parameters),
    publicOnly: true,
    authoritative: parameters.has('auth') || parameters.has('cert'),
    linksetFormat: parameters.get('format')?.toLowerCase(),
    followAliases: !parameters.has('ignore_aliases'),
    urlAppend: parameters.get('urlappend') ?? '',
    parameters,
    isDry: parameters.has('redirectionHeaders'),
  };
}

/**
 * Lets a known action override `noredirect` (recording "action=redirect&noredirect"). As in HDLProxy, `api`
 * and `metadata` are valid as actions, not as parameters.
 */
export function readShow(parameters: URLSearchParams): RedirectQuery['show'] {
  const action = parameters.get('action')?.toLowerCase();
  if (action === 'api' || action === 'linkset' || action === 'redirect') return action;
  if (action === 'showurls') return 'locations';
  return action === 'showvalues' || parameters.has('noredirect') ? 'page' : 'redirect';
}

/** Ignores an invalid index, which the record interface rejects (recording "redirect: index=abc"). */
const isIndex = (index: string): boolean => /^[+-]?\d{1,10}$/.test(index);

export const LINKSET_JSON = 'application/linkset+json';
export const LINKSET_TEXT = 'application/linkset';

// HTML is first because it wins at equal quality and without an Accept header.
const TYPES = ['text/html', 'application/json', 'application/problem+json', LINKSET_JSON, LINKSET_TEXT];

/** Whether the client prefers JSON, as a program that reads link sets does; browsers prefer HTML. */
export function prefersJson(accept: string | undefined): boolean {
  const [best = 'text/html'] = negotiatorOf(accept).mediaTypes(TYPES);
  return best !== 'text/html';
}

/** The parsed query of a request without parameters, shared by most requests. */
export const NO_PARAMETERS = readRedirectQuery(new URLSearchParams());

const LINKSET_TYPES = new Map([
  ['json', LINKSET_JSON],
  ['text', LINKSET_TEXT],
]);

/** Selects the media type of a link set by `format`, or else by Accept. */
export function linksetType({ linksetFormat = '' }: RedirectQuery, accept: string | undefined): string {
  const negotiator = negotiatorOf(LINKSET_TYPES.get(linksetFormat) ?? accept);
  return negotiator.mediaTypes([...LINKSET_TYPES.values()])[0] ?? LINKSET_JSON;
}
