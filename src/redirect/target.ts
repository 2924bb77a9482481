// Finds the redirect target of a record: one of its locations, else its URL value, else none. Pure.
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
import type { GatheredLists } from './locations/gather.js';
import { mayRedirect } from './locations/location-list.js';
import {
  type Choice,
  type NegotiationFacts,
  negotiatedAttributes,
  selectLocation,
} from './locations/select.js';
import { type HeaderLine, responseHeaders } from './locations/response-headers.js';
import { hrefOf, templateForms } from './locations/template.js';
import { type RedirectUrl, appendToUrl, toRedirectUrl } from './redirect-url.js';
import type { RedirectQuery } from './request.js';
import type { Signposts } from './signposting.js';
import { isOfType, isUrlSubtype, textOf } from './values.js';

export interface TargetRules {
  allowedHosts?: readonly string[] | undefined;
  /** Headers that 10320/headers may set, in lower case. */
  allowedHeaders: readonly string[];
}

interface TargetRequest {
  handle: string;
  /** The values of the record that the request selects. */
  values: readonly HandleValue[];
  query: RedirectQuery;
  headers: Omit<NegotiationFacts, 'wantsMetadata'>;
  /** Address of the client. */
  address: string;
  /** The country of an address; undefined when no database is configured. */
  countryOf: ((address: string) => string | undefined) | undefined;
  random: number;
}

/** The value that was chosen and the reason. */
export interface ChosenTarget {
  /** The URL as in the record, with `urlappend`. */
  text: string;
  /** The URL value; undefined for a location. */
  value: HandleValue | undefined;
  /** The selection among `count` locations; undefined for the URL value of a record without lists. */
  choice?: Choice<Candidate> & { count: number };
}

export interface RedirectTarget {
  /** Undefined when the record has neither a location nor a URL. */
  chosen: ChosenTarget | undefined;
  /** The URL of `chosen`, or the reason for its refusal. */
  url: RedirectUrl | undefined;
  status: number;
  /** True when the same request may get another target next time. */
  isRandom: boolean;
  variation: Variation;
  /** Link headers and those of 10320/headers. */
  headers: readonly HeaderLine[];
  /** Typed links, when signposting is on. */
  signposts?: Signposts;
}

/** @throws ServiceError BAD_PARAMETER when `urlappend` changes the host */
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

/** Without any list, link or header the first URL value is the target. */
function takesPart(gathered: GatheredLists | undefined): gathered is GatheredLists {
  if (gathered === undefined) return false;
  const { own, included, prefix, prefixIncluded } = gathered;
  return [own, ...included.flat(), ...prefix, ...prefixIncluded.flat()].some(
    ({ lists, links, headers }) => lists.length + links.length + headers.length > 0,
  );
}

/** The first value of type URL in the order of the record, else the first of a subtype. */
export function pickUrl(values: readonly HandleValue[]): ChosenTarget | undefined {
  if (!mayRedirect(values)) return undefined;
  const isUsable = (value: HandleValue): boolean => (textOf(value) ?? '').trim() !== '';
  const value =
    values.find((each) => isOfType(each, 'URL', '0.TYPE/URL') && isUsable(each)) ??
    values.find((each) => isUrlSubtype(each) && isUsable(each));
  return value && { text: textOf(value) ?? '', value };
}

/** Undefined when the chosen location has no address (recording "loc xml: one location without href"). */
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

/** Only exactly these texts count (recording "http_sc=" 303" on the location"). */
const statusOf = (text: string | undefined): number =>
  text !== undefined && ['301', '302', '303', '307', '308'].includes(text) ? Number(text) : 302;
