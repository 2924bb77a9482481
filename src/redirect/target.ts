// Finds the redirect target of a record: one of its locations, else its URL value, else none.
import { ServiceError } from '../errors.js';
import { type HandleValue, createValueFilter } from '../handle/value.js';
import type { Location, LocationList, ParseLocations } from './locations.js';
import { type RedirectUrl, appendToUrl, toRedirectUrl } from './redirect-url.js';
import type { RedirectQuery } from './request.js';
import { type SelectedLocation, isNegotiated, selectLocation } from './select-location.js';
import { isOfType, isUrlSubtype, textOf } from './values.js';

export interface TargetDeps {
  allowedHosts: readonly string[] | undefined;
  parseLocations: ParseLocations;
  random: () => number;
}

interface TargetRequest {
  handle: string;
  values: readonly HandleValue[];
  query: RedirectQuery;
  accept: string | undefined;
}

/** The value that was chosen and the reason. */
export interface ChosenValue {
  /** The URL as in the record, with `urlappend`. */
  text: string;
  index: number;
  type: string;
  /** The location, of `count` in the value. */
  selected?: SelectedLocation & { count: number };
}

export interface RedirectTarget {
  /** Undefined when the record has neither a location nor a URL. */
  chosen: ChosenValue | undefined;
  /** Its URL, or the reason why it is not redirected to. */
  url: RedirectUrl | undefined;
  status: number;
  /** True when the same request may get another target next time. */
  isRandom: boolean;
  variesByAccept: boolean;
}

/** @throws ServiceError BAD_PARAMETER when `urlappend` changes the host */
export function findTarget(request: TargetRequest, deps: TargetDeps): RedirectTarget {
  const values = request.values.filter(createValueFilter(request.query));
  const locations = locationsIn(values, request.handle, deps.parseLocations);
  const chosen = choose(values, { locations, request, random: deps.random });
  return {
    chosen,
    url: chosen && toRedirectUrl(chosen.text, deps),
    status: statusOf(chosen?.selected?.location),
    isRandom: chosen?.selected?.isRandom ?? false,
    variesByAccept: locations?.list.locations.some(isNegotiated) ?? false,
  };
}

interface LocationsValue {
  value: HandleValue;
  list: LocationList;
}

/** The first valid 10320/loc value. Invalid ones are skipped; HDLProxy responds with 500. */
function locationsIn(
  values: readonly HandleValue[],
  handle: string,
  parse: ParseLocations,
): LocationsValue | undefined {
  for (const value of values.filter((each) => isOfType(each, '10320/LOC'))) {
    const list = parse(textOf(value) ?? '', handle);
    if (list !== undefined) return { value, list };
  }
  return undefined;
}

function choose(
  values: readonly HandleValue[],
  given: { locations: LocationsValue | undefined; request: TargetRequest; random: () => number },
): ChosenValue | undefined {
  const { locations, request, random } = given;
  const { query, accept } = request;
  const url = urlIn(values);
  if (locations === undefined) return url && chosenValue(url, textOf(url) ?? '', query);
  const { list, value } = locations;
  const legacy = url && legacyLocation(textOf(url) ?? '');
  const candidates = legacy ? { ...list, locations: [...list.locations, legacy] } : list;
  const { locationAttributes, country } = query;
  const selected = selectLocation(candidates, { locationAttributes, country, accept, random });
  if (selected === undefined) return undefined;
  const source = url !== undefined && selected.location === legacy ? url : value;
  return {
    ...chosenValue(source, selected.location.href, query),
    selected: { ...selected, count: list.locations.length },
  };
}

/** A URL value beside locations has weight 0 (recording "action=showurls on loc"). */
const legacyLocation = (href: string): Location => ({
  href,
  weight: 0,
  attributes: new Map([['mode', 'legacy']]),
});

/** The first value of type URL in the order of the record, else the first of a subtype. */
function urlIn(values: readonly HandleValue[]): HandleValue | undefined {
  const usable = values.filter((value) => (textOf(value) ?? '').trim() !== '');
  return usable.find((value) => isOfType(value, 'URL', '0.TYPE/URL')) ?? usable.find(isUrlSubtype);
}

function chosenValue({ index, type }: HandleValue, href: string, { urlAppend }: RedirectQuery): ChosenValue {
  const text = appendToUrl(href, urlAppend);
  if (text !== undefined) return { text, index, type };
  throw new ServiceError('BAD_PARAMETER', { detail: 'urlappend changes the host of the URL' });
}

/** `http_sc` of the location, when that is a redirect. */
function statusOf(location: Location | undefined): number {
  const status = Number(location?.attributes.get('http_sc'));
  return [301, 302, 303, 307, 308].includes(status) ? status : 302;
}
