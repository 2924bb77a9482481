// Finds a record's redirect target: a location, or else a URL value. Pure.
import { ServiceError } from '../errors.js';
import type { HandleValue } from '../handle/value.js';
import type { Steps } from '../time-slicer.js';
import {
  type Candidate,
  type Candidates,
  NO_VARIATION,
  type Variation,
  candidatesOf,
  variationOf,
} from './locations/candidates.js';
import type { HeaderLine } from './extension.js';
import type { GatheredLists } from './locations/gather.js';
import { mayRedirect } from './locations/location-list.js';
import {
  type Choice,
  type NegotiationFacts,
  negotiatedAttributes,
  selectLocation,
} from './locations/select.js';
import { responseHeaders } from './locations/response-headers.js';
import { hrefOf, templateForms } from './locations/template.js';
import { type RedirectUrl, appendToUrl, toRedirectUrl } from './redirect-url.js';
import type { RedirectQuery } from './request.js';
import { isOfType, isUrlSubtype, textOf } from './values.js';

export interface TargetRules {
  allowedHosts?: readonly string[] | undefined;
  /** Lower-case names of the headers that 10320/headers may set. */
  allowedHeaders: readonly string[];
}

interface TargetRequest {
  handle: string;
  /** The record values that match the request's selection. */
  values: readonly HandleValue[];
  query: RedirectQuery;
  headers: Omit<NegotiationFacts, 'wantsMetadata'>;
  /** Client address. */
  address: string;
  /** Looks up a country by address; undefined without `redirect.countryDatabase`. */
  countryOf: ((address: string) => string | undefined) | undefined;
  random: number;
}

/** The chosen value and the reason for the choice. */
export interface ChosenTarget {
  /** The unescaped URL from the record, with `urlappend`. */
  text: string;
  /** The URL value; undefined for a location. */
  value: HandleValue | undefined;
  /** The choice among `count` locations; undefined for a record without lists. */
  choice?: Choice<Candidate> & { count: number };
}

export interface RedirectTarget {
  /** Undefined for a record with neither a location nor a URL. */
  chosen: ChosenTarget | undefined;
  /** The URL of `chosen`, or the reason for its rejection. */
  url: RedirectUrl | undefined;
  status: number;
  /** Whether a repeated request may get a different target. */
  isRandom: boolean;
  variation: Variation;
  /** Link headers, and headers from 10320/headers. */
  headers: readonly HeaderLine[];
}

/** @throws ServiceError BAD_PARAMETER if `urlappend` changes the host */
export function* findTarget(
  request: TargetRequest,
  gathered: GatheredLists | undefined,
  rules: TargetRules,
): Steps<RedirectTarget> {
  const { handle, values, query } = request;
  const allowed = rules.allowedHeaders;
  const headers = gathered ? yield* responseHeaders(gathered, { handle, allowed }) : [];
  if (!takesPart(gathered)) {
    const chosen = withAppended(pickUrl(values), query);
    return { ...urlOf(chosen, rules), status: 302, isRandom: false, variation: NO_VARIATION, headers };
  }
  const candidates = candidatesOf(gathered, values);
  const chosen = withAppended(yield* pickLocation(candidates, request), query);
  const { location, isRandom = false } = chosen?.choice ?? {};
  return {
    ...urlOf(chosen, rules),
    status: statusOf(location?.attributes.get('http_sc') ?? candidates.status),
    isRandom,
    variation: variationOf(candidates, { looksUpCountry: looksUpCountry(request) }),
    headers,
  };
}

const looksUpCountry = ({ query, countryOf }: TargetRequest): boolean =>
  query.country === undefined && countryOf !== undefined;

const urlOf = (
  chosen: ChosenTarget | undefined,
  rules: TargetRules,
): Pick<RedirectTarget, 'chosen' | 'url'> => ({ chosen, url: chosen && toRedirectUrl(chosen.text, rules) });

/** Whether lists, links or headers affect the redirect; if none does, the first URL value is the target. */
function takesPart(gathered: GatheredLists | undefined): gathered is GatheredLists {
  if (gathered === undefined) return false;
  const { own, included, prefix, prefixIncluded } = gathered;
  return [own, ...included.flat(), ...prefix, ...prefixIncluded.flat()].some(
    ({ lists, links, headers }) => lists.length + links.length + headers.length > 0,
  );
}

/** Returns the first URL value in record order, or else the first URL subtype. */
export function pickUrl(values: readonly HandleValue[]): ChosenTarget | undefined {
  if (!mayRedirect(values)) return undefined;
  const isUsable = (value: HandleValue): boolean => (textOf(value) ?? '').trim() !== '';
  const value =
    values.find((each) => isOfType(each, 'URL', '0.TYPE/URL') && isUsable(each)) ??
    values.find((each) => isUrlSubtype(each) && isUsable(each));
  return value && { text: textOf(value) ?? '', value };
}

/**
 * Returns undefined if the chosen location has no address (recording "loc xml: one location without href").
 */
function* pickLocation(
  { locations, chooseBy, mayHave }: Candidates,
  { handle, query, headers, address, countryOf, random }: TargetRequest,
): Steps<ChosenTarget | undefined> {
  const wanted = [
    ...query.locationAttributes,
    ...negotiatedAttributes({ ...headers, wantsMetadata: query.wantsMetadata }),
  ];
  const choice = yield* selectLocation(locations, chooseBy, {
    attributes: wanted.filter(({ name, value }) => mayHave(name, value)),
    country: query.country ?? countryOf?.(query.address ?? address),
    address,
    random,
  });
  const text = choice && hrefOf(choice.location.attributes, templateForms(handle));
  if (choice === undefined || text === undefined) return undefined;
  return { text, value: choice.location.value, choice: { ...choice, count: locations.length } };
}

function withAppended(
  chosen: ChosenTarget | undefined,
  { urlAppend }: RedirectQuery,
): ChosenTarget | undefined {
  if (chosen === undefined) return undefined;
  const text = appendToUrl(chosen.text, urlAppend);
  if (text !== undefined) return { ...chosen, text };
  throw new ServiceError('BAD_PARAMETER', { detail: 'urlappend changes the host of the URL' });
}

/** Compares the text exactly, with no trimming (recording "http_sc=" 303" on the location"). */
const statusOf = (text: string | undefined): number =>
  text !== undefined && ['301', '302', '303', '307', '308'].includes(text) ? Number(text) : 302;
