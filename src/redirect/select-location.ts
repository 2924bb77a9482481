// Selects one location of a list for a request: locatt, content negotiation, country, weight. Pure.
import { type AcceptHeader, readAccept } from './accept.js';
import type { Location, LocationList } from './locations.js';

/** What the selection depends on besides the list. */
interface RequestFacts {
  locationAttributes: readonly (readonly [name: string, value: string])[];
  country: string | undefined;
  accept: string | undefined;
  /** From 0 up to, but not including, 1. */
  random: () => number;
}

export interface SelectedLocation {
  location: Location;
  /** The last selector that removed locations; `only` when none did. */
  by: 'locatt' | 'conneg' | 'country' | 'no-country' | 'weighted' | 'only';
  /** True when the same request may get another location next time. */
  isRandom: boolean;
}

type Candidates = Pick<SelectedLocation, 'by'> & { locations: readonly Location[] };
type Selector = (locations: readonly Location[], facts: RequestFacts) => Candidates;

/** Those that `choose_by` may name, beside `weighted`. `address` and `score` are not supported. */
const SELECTORS = new Map<string, Selector>([
  ['locatt', selectByAttributes],
  ['country', selectByCountry],
]);

/**
 * Applies the selectors of the list in order and then draws by weight (Technical Manual, chapter 12). A selector
 * that would leave no location is skipped. A location with `http_role="conneg"` is selected by Accept or by its
 * attributes; otherwise only when the list has no other.
 */
export function selectLocation(list: LocationList, facts: RequestFacts): SelectedLocation | undefined {
  const { chooseBy, locations } = list;
  const selectors = chooseBy.includes('weighted')
    ? chooseBy.slice(0, chooseBy.indexOf('weighted'))
    : chooseBy;
  const isNamed =
    selectors.includes('locatt') && selectByAttributes(locations, facts).locations.length < locations.length;
  const negotiated = isNamed ? undefined : negotiate(locations, facts.accept);
  if (negotiated !== undefined) return { location: negotiated, by: 'conneg', isRandom: false };
  const others = locations.filter((location) => !isNegotiated(location));
  const candidates = isNamed || others.length === 0 ? locations : others;
  const { locations: left, by } = applySelectors(candidates, selectors, facts);
  const [first, ...more] = left;
  if (first === undefined) return undefined;
  if (more.length === 0) return { location: first, by, isRandom: false };
  return selectByWeight([first, ...more], facts.random);
}

function applySelectors(
  locations: readonly Location[],
  names: readonly string[],
  facts: RequestFacts,
): Candidates {
  let left: Candidates = { locations, by: 'only' };
  for (const name of names) {
    const selected = SELECTORS.get(name)?.(left.locations, facts) ?? left;
    const count = selected.locations.length;
    if (count > 0 && count < left.locations.length) left = selected;
  }
  return left;
}

/** Whether a location is selected by the Accept header. */
export const isNegotiated = ({ attributes }: Location): boolean =>
  attributes.get('http_role')?.toLowerCase() === 'conneg';

/** A URL value, which takes part beside the locations. */
export const isLegacy = ({ attributes }: Location): boolean => attributes.get('mode') === 'legacy';

/** When all weights are 0, a URL value wins, and without one the locations are equally likely. */
function selectByWeight(locations: [Location, ...Location[]], random: () => number): SelectedLocation {
  const weighted = locations.filter(({ weight }) => weight > 0);
  const legacy = locations.find(isLegacy);
  if (weighted.length === 0 && legacy) return { location: legacy, by: 'weighted', isRandom: false };
  const [first = locations[0], ...others] = weighted.length === 0 ? locations : weighted;
  if (others.length === 0) return { location: first, by: 'weighted', isRandom: false };
  const weightOf = ({ weight }: Location): number => (weighted.length === 0 ? 1 : weight);
  let rest = random() * [first, ...others].reduce((sum, location) => sum + weightOf(location), 0);
  const drawn = [first, ...others].find((location) => (rest -= weightOf(location)) < 0);
  return { location: drawn ?? first, by: 'weighted', isRandom: true };
}

/** Each `locatt` narrows the list; one that matches no location is skipped. */
function selectByAttributes(
  locations: readonly Location[],
  { locationAttributes }: RequestFacts,
): Candidates {
  const left = locationAttributes.reduce((kept, [name, value]) => {
    const matching = kept.filter(({ attributes }) => attributes.get(name) === value);
    return matching.length === 0 ? kept : matching;
  }, locations);
  return { locations: left, by: 'locatt' };
}

/** Without a location for the country, or without a country, locations for a country are removed. */
function selectByCountry(locations: readonly Location[], { country }: RequestFacts): Candidates {
  const countryOf = ({ attributes }: Location): string | undefined =>
    attributes.get('country')?.toLowerCase();
  const wanted = country?.toLowerCase();
  const matching = locations.filter((location) => wanted !== undefined && countryOf(location) === wanted);
  if (matching.length > 0) return { locations: matching, by: 'country' };
  return { locations: locations.filter((location) => countryOf(location) === undefined), by: 'no-country' };
}

/** The negotiated location with the best quality, when that is better than the quality of HTML. */
function negotiate(locations: readonly Location[], header: string | undefined): Location | undefined {
  const accept = readAccept(header);
  let best: Location | undefined;
  let bestQuality = accept.qualityOf('text/html');
  for (const location of locations.filter(isNegotiated)) {
    const quality = qualityOfLocation(location, accept);
    if (quality > bestQuality) [best, bestQuality] = [location, quality];
  }
  return best;
}

/** A location without a media type has every type. */
function qualityOfLocation({ attributes }: Location, accept: AcceptHeader): number {
  const type = attributes.get('media_type') ?? attributes.get('type');
  if (type === undefined) return accept.highest;
  return accept.qualityOf((type.split(';', 1)[0] ?? '').trim().toLowerCase());
}
