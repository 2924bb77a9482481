// Finds a record's redirect target: a location, or else a URL value. Pure.
import type { HandleValue } from '../../handle/value.js';
import { type ChosenTarget, type FoundTarget, NO_VARIATION } from '../../redirect/extension.js';
import type { RedirectQuery } from '../../redirect/request.js';
import { firstUrl } from '../../redirect/target.js';
import type { Steps } from '../../time-slicer.js';
import { type Candidate, type Candidates, candidatesOf, variationOf } from './candidates.js';
import type { GatheredLists } from './gather.js';
import { responseHeaders } from './response-headers.js';
import {
  type Choice,
  type NegotiationFacts,
  negotiatedAttributes,
  selectLocation,
  type WantedAttribute,
} from './select.js';
import { hrefOf, templateForms } from './template.js';

interface TargetRequest {
  handle: string;
  /** The record values that match the request's selection. */
  values: readonly HandleValue[];
  query: RedirectQuery;
  headers: NegotiationFacts;
  /** Client address. */
  address: string;
  /** Looks up a country by address; undefined without `redirect.countryDatabase`. */
  countryOf: ((address: string) => string | undefined) | undefined;
  random: number;
}

/** `allowedHeaders`: lower-case names of the headers that 10320/headers may set. */
export function* findTarget(
  request: TargetRequest,
  gathered: GatheredLists,
  allowedHeaders: readonly string[],
): Steps<FoundTarget> {
  const { handle, values } = request;
  const headers = yield* responseHeaders(gathered, handle, allowedHeaders);
  if (!takesPart(gathered)) {
    return { chosen: firstUrl(values), status: 302, isRandom: false, variation: NO_VARIATION, headers };
  }
  const query = readLocationQuery(request.query.parameters);
  const looksUpCountry = query.country === undefined && request.countryOf !== undefined;
  const candidates = candidatesOf(gathered, values);
  const choice = yield* pickLocation(candidates, query, request);
  const chosen = choice && chosenBy(choice, candidates.locations.length, handle);
  const { location, isRandom = false } = (chosen && choice) ?? {};
  return {
    chosen,
    status: redirectStatus(location?.attributes.get('http_sc') ?? candidates.status),
    isRandom,
    variation: variationOf(candidates, { looksUpCountry }),
    headers,
  };
}

/** Whether lists, links or headers affect the redirect; if none does, the first URL value is the target. */
function takesPart({ own, included, prefix, prefixIncluded }: GatheredLists): boolean {
  return [own, ...included.flat(), ...prefix, ...prefixIncluded.flat()].some(
    ({ lists, links, headers }) => lists.length + links.length + headers.length > 0,
  );
}

function* pickLocation(
  { locations, chooseBy, mayHave }: Candidates,
  query: LocationQuery,
  { headers, address, countryOf, random }: TargetRequest,
): Steps<Choice<Candidate> | undefined> {
  const wanted = [...query.attributes, ...negotiatedAttributes(headers, query.wantsMetadata)];
  return yield* selectLocation(locations, chooseBy, {
    attributes: wanted.filter(({ name, value }) => mayHave(name, value)),
    country: query.country ?? countryOf?.(query.address ?? address),
    address,
    random,
  });
}

/**
 * Returns undefined if the chosen location has no address (recording "loc xml: one location without href").
 */
function chosenBy(choice: Choice<Candidate>, count: number, handle: string): ChosenTarget | undefined {
  const { attributes, value } = choice.location;
  const text = hrefOf(attributes, templateForms(handle));
  return text === undefined ? undefined : { text, value, reason: () => describeTarget(choice, count) };
}

const REASONS: Record<Choice<Candidate>['by'], string> = {
  locatt: 'it has the requested attributes',
  accept: 'the Accept headers prefer it',
  address: 'it is for the address of the client',
  country: 'it is for the country of the client',
  score: 'it has the highest score',
  weight: 'it is the only one left with a weight',
  only: 'it is the only one',
};

/** Describes the choice among `count` locations. */
function describeTarget({ location, by, isRandom }: Choice<Candidate>, count: number): string {
  const { value } = location;
  const url = value && `the ${value.type} value at index ${value.index}`;
  if (count === 1) return url === undefined ? 'The only location.' : `It is ${url}.`;
  const id = location.attributes.get('id');
  const name = url === undefined ? (id === undefined ? 'A location' : `Location ${id}`) : `It is ${url}`;
  const reason = isRandom ? 'chosen at random by weight' : REASONS[by];
  return `${name}, one of ${count} locations: ${reason}.`;
}

/** Compares the text exactly, with no trimming (recording "http_sc=" 303" on the location"). */
const redirectStatus = (text: string | undefined): number =>
  text !== undefined && ['301', '302', '303', '307', '308'].includes(text) ? Number(text) : 302;

interface LocationQuery {
  /** Location attributes from `locatt`. */
  attributes: readonly WantedAttribute[];
  wantsMetadata: boolean;
  country: string | undefined;
  /** Address from `ip`, which replaces the client address in the country lookup. */
  address: string | undefined;
}

/** Reads `metadata` as an action only, not as a parameter. */
const readLocationQuery = (parameters: URLSearchParams): LocationQuery => ({
  attributes: readLocationAttributes(parameters),
  wantsMetadata: parameters.get('action')?.toLowerCase() === 'metadata',
  country: parameters.get('country') ?? undefined,
  address: parameters.get('ip') ?? undefined,
});

/** Maximum `locatt` parameters, because each is compared with every location. */
const MAX_LOCATION_ATTRIBUTES = 50;

/** Splits each attribute at its first colon and trims the name. Without a colon, any value matches. */
const readLocationAttributes = (parameters: URLSearchParams): WantedAttribute[] =>
  parameters
    .getAll('locatt')
    .slice(0, MAX_LOCATION_ATTRIBUTES)
    .map((pair) => {
      const [name = '', ...rest] = pair.split(':');
      return { name: name.trim(), value: rest.length === 0 ? undefined : rest.join(':'), by: 'locatt' };
    });
